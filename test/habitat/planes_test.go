package habitat

import (
	"errors"
	"testing"

	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// ownPlane starts a control plane for one test. The checks for all tests run at its end.
func ownPlane(t *testing.T, options installation.Options) *plane {
	t.Helper()
	p, err := newPlane(t.Context())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, p.stop()) })
	kit.Must(t, p.install(t.Context(), options))
	t.Cleanup(func() {
		if t.Failed() {
			kit.ShowLog(p.installation.Logs()...)
		}
		kit.Must(t, errors.Join(p.checkCanaries(), p.checkRequests()))
	})
	return p
}
