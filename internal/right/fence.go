package right

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
)

// Fence returns the connection with a fence before it. Writes pass only while may returns
// nil, and no request passes while the target is known not to answer. The requests for
// the Lease use another connection, and detect when the target answers again.
//
// The fence is the last layer before the network, so no client of the connection can
// bypass it.
func Fence(config *rest.Config, may func() error) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return fence{inner, may} })
	return config
}

type fence struct {
	http.RoundTripper

	// may returns nil, or why writes are forbidden now.
	may func() error
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	err := f.may()
	isRead := request.Method == http.MethodGet || request.Method == http.MethodHead
	if err == nil || isRead && !errors.Is(err, ErrTargetUnreachable) {
		return f.RoundTripper.RoundTrip(request)
	}
	if request.Body != nil {
		err = errors.Join(err, request.Body.Close())
	}
	return nil, err
}
