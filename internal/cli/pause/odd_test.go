package pause

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func TestOddSettings(t *testing.T) {
	clitest.CheckOdd(t, func(e *env.Environment, cm *corev1.ConfigMap) error {
		now := e.Now()
		for _, by := range []setting{holdSetting(now, now), suspendSetting(), resumeSetting(now)} {
			done, err := by.application(apps.ItemOf(cm))
			fmt.Fprintln(e.Out, lens.Visible(done.text(err)))
		}
		return nil
	})
}
