package plan_test

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/check/hostile"
)

// An agent computes again what admission has computed, after each restart. No Application makes it
// take half of the memory of its Pod, also if there was no admission.
func TestNoApplicationTakesTheAgentDown(t *testing.T) {
	limit := hostile.LimitOf(t, "base/agent/deployment.yaml")
	for _, shape := range hostile.Shapes() {
		t.Run(shape.Why, func(t *testing.T) {
			app, err := application.Read(shape.ConfigMap())
			check.Must(t, err)
			hostile.Measure(limit, func() {
				var cached *plan.Cache
				if cached, err = cached.Of(app); err == nil {
					cached.Pack()
				}
			}).Check(t)
			if message := check.Message(err); !strings.Contains(message, shape.Cause) || shape.Cause == "" && err != nil {
				t.Errorf("the error is %.300q, want %q", message, shape.Cause)
			}
		})
	}
}
