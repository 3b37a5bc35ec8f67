package enrol

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestIsOn(t *testing.T) {
	of := func(cluster string) map[string]string {
		return map[string]string{"krake.dev/application": "v1", "krake.dev/cluster": cluster}
	}
	for _, c := range []struct {
		why  string
		cm   metav1.ObjectMeta
		want bool
	}{
		{"it names the cluster, and was never admitted", metav1.ObjectMeta{Annotations: of("east")}, true},
		{"it has left, and is held yet", metav1.ObjectMeta{Annotations: of("west"), Finalizers: []string{"east.krake.dev/resources"}}, true},
		{"it has left before anything was there", metav1.ObjectMeta{Annotations: of("west"), Labels: map[string]string{"holder.krake.dev/east": "true"}}, true},
		{"it has left", metav1.ObjectMeta{Annotations: of("west"), Finalizers: []string{"west.krake.dev/resources"}}, false},
		{"it is the hub's own", metav1.ObjectMeta{Annotations: map[string]string{"krake.dev/application": "v1"}}, false},
		{"another cluster's name begins so", metav1.ObjectMeta{Annotations: of("east2"), Finalizers: []string{"east2.krake.dev/resources"}}, false},
		{"it is no Application", metav1.ObjectMeta{Annotations: map[string]string{"krake.dev/cluster": "east"}, Finalizers: []string{"east.krake.dev/resources"}}, false},
	} {
		check.Equal(t, c.why, c.want, isOn(&corev1.ConfigMap{ObjectMeta: c.cm}, "east"))
	}
}

// A refusal names some of the Applications, and their number.
func TestStillUsed(t *testing.T) {
	var names []string
	for i := range 25 {
		names = append(names, fmt.Sprintf("east/app-%02d", i))
	}
	text := stillUsed("east", names).Error()
	for _, part := range []string{"25 Applications name cluster east", "\n  east/app-19\n  and 5 more\n", "krake.dev/force-delete=east"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	if text := stillUsed("east", names[:1]).Error(); strings.Contains(text, "more") {
		t.Error(text)
	}
}
