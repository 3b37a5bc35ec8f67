package agent

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/leases"
)

// fence lets writes through only as long as the agent may write, and nothing at
// all while the target is known not to answer: the Lease is asked for, and that
// tells when it does. It is the last thing before the wire, so that no client of
// the connection can pass it by.
type fence struct {
	http.RoundTripper

	// may tells why nothing may be written now.
	may func() error
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	err := f.may()
	if err == nil || isRead(request) && !errors.Is(err, leases.ErrTargetUnreachable) {
		return f.RoundTripper.RoundTrip(request)
	}
	if request.Body != nil {
		err = errors.Join(err, request.Body.Close())
	}
	return nil, err
}

func isRead(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

// fenced gives the connection behind the fence.
func fenced(config *rest.Config, may func() error) *rest.Config {
	return wrapped(config, func(inner http.RoundTripper) http.RoundTripper { return fence{inner, may} })
}

// wrapped gives a connection whose requests pass through something. The
// underlying connection is shared.
func wrapped(config *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(wrap)
	return config
}
