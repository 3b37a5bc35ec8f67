package apitypes

import "testing"

// Kubernetes accepts one of two fields of a union.
func TestExclude(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"configMap", "emptyDir", true}, {"secret", "hostPath", true}, {"value", "valueFrom", true}, {"fieldRef", "secretKeyRef", true},
		{"exec", "httpGet", true}, {"sleep", "exec", true}, {"grpc", "tcpSocket", true}, {"minAvailable", "maxUnavailable", true}, {"pods", "resource", true},
		{"ipBlock", "podSelector", true}, {"namespaceSelector", "ipBlock", true}, {"service", "resource", true}, {"nfs", "csi", true},
		{"podSelector", "namespaceSelector", false}, {"name", "emptyDir", false}, {"image", "command", false}, {"value", "value", false},
		{"type", "rollingUpdate", false}, {"", "exec", false},
	} {
		if got := Exclude(c.a, c.b); got != c.want {
			t.Errorf("%s and %s exclude each other: %t", c.a, c.b, got)
		}
	}
}
