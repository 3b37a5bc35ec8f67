package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// The controller logs each error of a pass. Only those that no status states are for the
// administrator of the agent.
func TestErrorsThatTheStatusStatesAreNotLogged(t *testing.T) {
	var lines []string
	logger := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{})
	of := logOf(logger.WithName("loop"))
	forbidden, broken := reconcile.Stated(errors.New("forbidden")), errors.New("broken")
	for _, request := range []*ctrl.Request{nil, {NamespacedName: appName}} {
		lines = nil
		log := of(request).WithName("controller").WithValues("a", "b")
		log.Error(apierror.Scrub(forbidden), "Reconciler error")
		log.Error(errors.Join(forbidden, forbidden), "Reconciler error")
		check.Equal(t, "lines", []string(nil), lines)
		log.Error(errors.Join(forbidden, broken), "Reconciler error")
		log.Info("started")
		if len(lines) != 2 || !strings.Contains(lines[0], "broken") || strings.Contains(lines[1], appName.String()) != (request != nil) {
			t.Errorf("lines %q", lines)
		}
	}
}
