package clusters

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func TestOddRemains(t *testing.T) {
	clitest.CheckOdd(t, func(e *env.Environment, cm *corev1.ConfigMap) error {
		return remainsOf([]apps.Item{apps.ItemOf(cm)}, nil, apps.Heartbeats{Read: true}, e.Now()).print(e.Out, env.Painter{})
	})
}
