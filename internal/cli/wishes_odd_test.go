package cli

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/internal/lens"
)

func TestOddWishes(t *testing.T) {
	checkOdd(t, func(e *environment, cm *corev1.ConfigMap) error {
		now := e.now()
		for _, by := range []wisher{holdWisher(now, now), suspendWisher(), resumeWisher(now)} {
			done, err := by.application(itemOf(cm))
			fmt.Fprintln(e.Out, lens.Visible(done.text(err)))
		}
		return nil
	})
}
