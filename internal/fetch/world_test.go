package fetch

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// canary is part of all data that hosts send, and must never be in an error.
const canary = "CANARY"

// nameServer answers questions without a network. An unknown name has the address 127.0.0.1,
// which only the victim has, as if libc had parsed the name.
type nameServer struct {
	sync.Mutex
	// known has the answers to the first question, the second, and so on. The last one is
	// repeated.
	known map[string][]string
	asked map[string]int
}

func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.serve(server)
		return client, nil
	}}
}

// serve answers one question in the TCP format of DNS.
func (n *nameServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return
	}
	answer := n.answer(question)
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)) //nolint:gosec // G115: answers are short
	if err != nil {
		return
	}
}

func (n *nameServer) answer(question []byte) []byte {
	const header = 12
	end, labels := header, []string(nil)
	for question[end] != 0 {
		length := int(question[end])
		labels = append(labels, string(question[end+1:end+1+length]))
		end += 1 + length
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	end += 5
	var records []byte
	count := byte(0)
	for _, ip := range n.addressesOf(strings.ToLower(strings.Join(labels, ".")), kind) {
		count++
		records = binary.BigEndian.AppendUint16(append(records, 0xc0, header), kind)
		records = append(records, 0, 1, 0, 0, 0, 0, 0, lengthOf[kind])
		records = append(records, ip...)
	}
	answer := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0}, question[header:end]...)
	return append(answer, records...)
}

// lengthOf has the number of bytes of an address of type A (1), and AAAA (28).
var lengthOf = map[uint16]byte{1: 4, 28: 16}

func (n *nameServer) addressesOf(name string, kind uint16) [][]byte {
	n.Lock()
	defer n.Unlock()
	answers, ok := n.known[name]
	if !ok {
		answers = []string{"127.0.0.1"}
	}
	key := name + string(rune(kind))
	answer := answers[min(n.asked[key], len(answers)-1)]
	n.asked[key]++
	var found [][]byte
	for text := range strings.FieldsSeq(answer) {
		ip := netip.MustParseAddr(text)
		if ip.Is4() == (kind == 1) {
			found = append(found, ip.AsSlice())
		}
	}
	return found
}

// victim is a server that must not be reached. It counts connections.
type victim struct {
	listener net.Listener
	from     chan string
}

func newVictim(t *testing.T, address string) *victim {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	check.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	v := &victim{listener: listener, from: make(chan string, 1000)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			v.from <- conn.RemoteAddr().String()
			_ = conn.Close()
		}
	}()
	return v
}

func (v *victim) port() string { return portOf(v.listener.Addr()) }

// connections returns the number of connections. They are accepted in order, so all earlier
// ones are counted before the one that is made here.
func (v *victim) connections(t *testing.T) (count int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", v.listener.Addr().String())
	check.Must(t, err)
	defer func() { _ = conn.Close() }()
	for from := range v.from {
		if from == conn.LocalAddr().String() {
			return count
		}
		count++
	}
	return count
}

func portOf(address net.Addr) string {
	_, port, _ := net.SplitHostPort(address.String())
	return port
}

// world is a host with the name example.com and all names below, at an allowed address, and a
// name server.
type world struct {
	names   *nameServer
	host    *httptest.Server
	port    string
	options Options
}

// newWorld has its host at 127.0.0.2, so that 127.0.0.1 is as foreign as any other address.
func newWorld(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	check.Must(t, err)
	w := &world{
		names: &nameServer{known: map[string][]string{"example.com": {"127.0.0.2"}}, asked: map[string]int{}},
		host:  httptest.NewUnstartedServer(handler),
		port:  portOf(listener.Addr()),
	}
	_ = w.host.Listener.Close()
	w.host.Listener = listener
	w.host.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.host.StartTLS()
	t.Cleanup(w.host.Close)
	roots := x509.NewCertPool()
	roots.AddCert(w.host.Certificate())
	w.options = Options{
		Hosts:        []string{"example.com:" + w.port},
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		Timeout:      20 * time.Second,
		RootCAs:      roots,
		Resolver:     w.names.resolver(),
	}
	return w
}

func (w *world) fetcher(t *testing.T) *Fetcher {
	t.Helper()
	fetcher, err := New(w.options)
	check.Must(t, err)
	return fetcher
}

func (w *world) url(path string) string { return "https://example.com:" + w.port + path }

func (w *world) fetch(t *testing.T, text string) ([]byte, error) {
	t.Helper()
	source, isURL, err := application.ParseSource(application.ToscaKey, text)
	if err != nil || !isURL {
		t.Fatalf("%s: a URL: %v, %v", text, isURL, err)
	}
	return fetchOne(t.Context(), w.fetcher(t), source)
}

// fetchOne fetches one file, such as an archive.
func fetchOne(ctx context.Context, fetcher *Fetcher, source application.Source) ([]byte, error) {
	session, err := fetcher.Session(ctx, source)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Open(session.Entry())
}

// checkError compares the text of an error, and checks that it contains nothing from the host.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("want %q, got: %v", want, err)
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the error has what the host has sent: %v", err)
	}
}
