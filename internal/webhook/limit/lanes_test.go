package limit

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// serveLanes serves the handler behind the lanes, with a connection for each request.
func serveLanes(t *testing.T, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(NewLanes(next, time.Now))
	server.Client().Transport.(*http.Transport).DisableKeepAlives = true
	t.Cleanup(server.Close)
	return server
}

func send(ctx context.Context, t *testing.T, server *httptest.Server, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)
	check.Must(t, err)
	response, err := server.Client().Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// A body that is too large, or does not declare its length, is not read: the answer comes before any of it is sent.
func TestLanesRefuse(t *testing.T) {
	server := serveLanes(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for _, length := range []int{1000, maxBody} {
		check.Equal(t, fmt.Sprintf("answer to %d bytes", length), http.StatusOK, send(t.Context(), t, server, bytes.NewReader(make([]byte, length))))
	}
	for header, want := range map[string]string{
		fmt.Sprintf("Content-Length: %d", maxBody+1): "HTTP/1.1 413 ",
		"Transfer-Encoding: chunked":                 "HTTP/1.1 411 ",
	} {
		if answer, err := exchange(t, server, header, ""); err != nil || !strings.HasPrefix(answer, want) {
			t.Errorf("the answer to %s is %q, %v, want %s", header, answer, err, want)
		}
	}
}

// exchange sends the beginning of a request, and returns what the server answers until it closes the connection.
func exchange(t *testing.T, server *httptest.Server, header, body string) (string, error) {
	t.Helper()
	var dialer net.Dialer
	connection, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	check.Must(t, err)
	defer func() { _ = connection.Close() }()
	_, err = io.WriteString(connection, "POST / HTTP/1.1\r\nHost: x\r\n"+header+"\r\n\r\n"+body)
	check.Must(t, err)
	check.Must(t, connection.SetReadDeadline(time.Now().Add(time.Minute)))
	answer, err := io.ReadAll(connection)
	return string(answer), err
}

// Large reviews do not delay usual ones. The number of reviews in work is limited by the
// memory, for both.
func TestLanes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	working, most := map[bool]int{}, map[bool]int{}
	hold := make(chan struct{})
	server := serveLanes(t, func(_ http.ResponseWriter, r *http.Request) {
		large := r.ContentLength > smallBody
		mu.Lock()
		working[large]++
		most[large] = max(most[large], working[large])
		mu.Unlock()
		if large {
			<-hold
		}
		mu.Lock()
		working[large]--
		mu.Unlock()
	})
	var group sync.WaitGroup
	answers := make(chan int, 6)
	for range cap(answers) {
		group.Go(func() { answers <- send(t.Context(), t, server, bytes.NewReader(make([]byte, smallBody+1))) })
	}
	for range 100 {
		group.Go(func() {
			check.Equal(t, "answer to a usual one", http.StatusOK, send(t.Context(), t, server, bytes.NewReader(make([]byte, 100))))
		})
	}
	for range cap(answers) - largeAtOnce {
		select {
		case got := <-answers:
			check.Equal(t, "answer to a large one that has to wait too long", http.StatusServiceUnavailable, got)
		case <-time.After(10 * AnswerTime):
			close(hold)
			t.Fatal("more large ones are worked on than there is memory for")
		}
	}
	close(hold)
	group.Wait()
	for range largeAtOnce {
		check.Equal(t, "answer to a large one", http.StatusOK, <-answers)
	}
	if most[true] != largeAtOnce || most[false] > usualAtOnce {
		t.Errorf("at once there were %d large and %d usual ones", most[true], most[false])
	}
}

// A slow sender is disconnected, and the incomplete body is dropped.
func TestLanesCutOff(t *testing.T) {
	server := httptest.NewServer(NewLanes(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("half a review is worked on")
	}), func() time.Time { return time.Now().Add(100*time.Millisecond - bodyTime) }))
	t.Cleanup(server.Close)
	if answer, err := exchange(t, server, "Content-Length: 10", "abc"); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 408 ") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

// What a review has waited for its turn is missing from the time for its answer: the API server does not wait longer for it.
func TestWaitCountsForTheAnswer(t *testing.T) {
	t.Parallel()
	const wait = 100 * time.Millisecond
	left := make(chan time.Duration, 2*usualAtOnce)
	server := serveLanes(t, func(_ http.ResponseWriter, r *http.Request) {
		deadline, ok := r.Context().Deadline()
		check.Equal(t, "there is a deadline", true, ok)
		left <- time.Until(deadline)
		<-time.After(wait)
	})
	var group sync.WaitGroup
	for range cap(left) {
		group.Go(func() { check.Equal(t, "answer", http.StatusOK, send(t.Context(), t, server, strings.NewReader("{}"))) })
	}
	group.Wait()
	close(left)
	var late int
	for remaining := range left {
		if remaining <= AnswerTime-wait/2 {
			late++
		}
	}
	check.Equal(t, "reviews that have waited, and have less time", true, late >= usualAtOnce)
}

// An answer that only waits for others does not keep the next review waiting. It gives back one turn.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	const many = 2 * usualAtOnce
	var arrived atomic.Int32
	var mu sync.Mutex
	working, most := 0, 0
	all := make(chan struct{})
	server := serveLanes(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Waits") != "" {
			GiveBack(r.Context())
			GiveBack(r.Context())
			if arrived.Add(1) == many {
				close(all)
			}
			<-all
			return
		}
		mu.Lock()
		working++
		most = max(most, working)
		mu.Unlock()
		<-time.After(10 * time.Millisecond)
		mu.Lock()
		working--
		mu.Unlock()
	})
	sendAll := func(waits string) {
		var group sync.WaitGroup
		for range many {
			group.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
				check.Must(t, err)
				request.Header.Set("Waits", waits)
				response, err := server.Client().Do(request)
				check.Must(t, err)
				check.Must(t, response.Body.Close())
			})
		}
		group.Wait()
	}
	sendAll("yes") // all of them at once, or the test hangs
	sendAll("")
	check.Equal(t, "reviews in work", usualAtOnce, most)
	GiveBack(t.Context()) // there is no turn
}

// A client opens many connections at a time without completing a handshake. Clients from other
// addresses are still served.
func TestHandshakesTakeTurns(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{GetConfigForClient: NewHandshakes().Begin, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()

	// If all came from one sender, the last client would wait longer than AnswerTime.
	const idle = handshakesAtOnce * int(2*AnswerTime/handshakeTime)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range idle {
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Skipf("this system has one address of its own, so that senders cannot be told apart: %v", err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		go func() { // the answers are never read
			_ = tls.Client(mute{connection}, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()) //nolint:gosec // the test does not verify the server
		}()
	}
	<-time.After(handshakeTime / 2) // they wait for their turns
	ctx, cancel := context.WithTimeout(t.Context(), AnswerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	check.Must(t, err)
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatalf("who comes from elsewhere is not served: %v", err)
	}
	_ = response.Body.Close()
}

type mute struct{ net.Conn }

func (mute) Read([]byte) (int, error) { select {} }
