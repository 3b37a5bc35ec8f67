package habitat_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/check"
)

// A change to a result changes no other result.
func TestWorkloadsAreTheirOwn(t *testing.T) {
	object := decode(t, greeter)
	h := parse(t, object)
	want := runtime.DeepCopyJSON(h.Workload("busybox"))
	spoil(h.Workload("busybox"))
	spoil(object)
	check.Equal(t, "the workload", want, h.Workload("busybox"))
	again, _ := habitat.PeerConfigMap("shop")
	spoil(again)
	resource, _ := habitat.PeerConfigMap("shop")
	check.Equal(t, "the name of the peer file", "peer-watch-file", resource["metadata"].(map[string]any)["name"])
}

// spoil changes all values in an object.
func spoil(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			spoil(v)
			value[name] = "spoilt"
		}
	case []any:
		for i, v := range value {
			spoil(v)
			value[i] = "spoilt"
		}
	}
}

func TestSecrets(t *testing.T) {
	type secret struct{ name, key, path string }
	secrets := func(text string) []secret {
		var found []secret
		for _, s := range parse(t, decode(t, text)).Secrets() {
			found = append(found, secret{s.Name, s.Key, s.Path.String()})
		}
		return found
	}
	for _, test := range []struct {
		why, habitat string
		want         []secret
	}{
		{"all of them, in this order", greeter, []secret{
			{"greeter-config", "user.toml", "spec.v1beta2.service.configSecretName"},
			{"greeter-files", "", "spec.v1beta2.service.filesSecretName"},
			{"inner-ring-20240131235959", "ring-key", "spec.v1beta2.service.ringSecretName"},
		}},
		{"those of the deprecated version", old, []secret{
			{"old-config", "user.toml", "spec.service.configSecretName"},
			{"inner-ring-20240131235959", "ring-key", "spec.service.ringSecretName"},
		}},
		{"none", `{metadata: {name: a, namespace: b}, spec: {image: c, service: {name: d, topology: leader}}}`, nil},
	} {
		check.Equal(t, test.why, test.want, secrets(test.habitat), cmp.AllowUnexported(secret{}))
	}
}
