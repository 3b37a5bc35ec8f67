package hooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// callTime is how long a call may take in all.
	callTime = 5 * time.Second
	// maxAnswerHeader limits the header of an answer. The body is not read.
	maxAnswerHeader = 16 << 10
)

// Caller asks Services of Applications to shut down, by plain HTTP, as Krake does. It sends no
// secret, and ignores the body of an answer.
type Caller struct {
	client *http.Client
}

// NewCaller makes a Caller. The function dials, as [net.Dialer.DialContext] does. Pass
// nil in a Pod of the cluster, which can resolve the names of Services.
func NewCaller(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Caller {
	if dial == nil {
		dial = (&net.Dialer{Control: refuseOwn}).DialContext
	}
	return &Caller{client: &http.Client{
		Timeout: callTime,
		Transport: &http.Transport{
			Proxy:                  nil, // not that of the environment: Services are in the cluster
			DialContext:            dial,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxAnswerHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Call asks the Service on its port to shut down. Any answer but 2xx is an error.
func (c *Caller) Call(ctx context.Context, service manifest.Ref, port int32) error {
	if service.Kind != "Service" || len(validation.IsDNS1123Label(service.Name)) > 0 || len(validation.IsDNS1123Label(service.Namespace)) > 0 {
		return fmt.Errorf("ask %s to shut down: it is no Service in a namespace", service.ID)
	}
	if len(validation.IsValidPortNum(int(port))) > 0 {
		return fmt.Errorf("ask %s to shut down: there is no port %d", service.ID, port)
	}
	address := "http://" + net.JoinHostPort(service.Name+"."+service.Namespace+".svc", strconv.Itoa(int(port))) + "/shutdown"
	if err := c.put(ctx, address); err != nil {
		return fmt.Errorf("PUT %s: %w", address, err)
	}
	return nil
}

func (c *Caller) put(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "krake-agent")
	response, err := c.client.Do(request)
	if err != nil {
		return withoutAnswer(err)
	}
	// The body is not read: only the code matters.
	closed := response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return errors.Join(fmt.Errorf("the Service answers %d", response.StatusCode), closed)
	}
	return nil
}

// withoutAnswer returns an error without any part of the Service's answer, which errors
// of net/http may quote.
func withoutAnswer(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no answer within %s", callTime)
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network
	}
	return errors.New("the answer is no HTTP, or it breaks off")
}

// refuseOwn refuses to dial addresses of the agent's own host or link. A forged Service
// could lead there.
func refuseOwn(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	if ip := parsed.Addr().Unmap(); ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
		return fmt.Errorf("dial %s: no Service has such an address", ip)
	}
	return nil
}
