package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOddRemains(t *testing.T) {
	checkOdd(t, func(e *environment, cm *corev1.ConfigMap) error {
		return remainsOf([]item{itemOf(cm)}, nil, heartbeats{read: true}, e.now()).print(e.Out, painter{})
	})
}
