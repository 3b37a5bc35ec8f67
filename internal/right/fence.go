package right

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
)

// Fence returns the connection with a fence before it: writes pass while may
// returns nil, and no request passes while the target is known not to answer. The
// requests for the Lease find out when it does, and pass by another connection.
//
// The fence is the last thing before the wire, so that no client of the connection
// can pass it by.
func Fence(config *rest.Config, may func() error) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return fence{inner, may} })
	return config
}

type fence struct {
	http.RoundTripper

	// may is nil, or why nothing may be written now.
	may func() error
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	err := f.may()
	if err == nil || isRead(request) && !errors.Is(err, ErrTargetUnreachable) {
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
