package habitat_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// The workloads of the samples were written by hand, from the requirements of a supervisor.
func TestWorkload(t *testing.T) {
	files, err := filepath.Glob("testdata/samples/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d samples, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			sample := decode(t, read(t, file))
			h := parse(t, sample["habitat"].(map[string]any))
			image, _ := sample["files_image"].(string)
			check.Equal(t, sample["why"].(string), sample["workload"], any(h.Workload(image)))
		})
	}
}

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
		if got := secrets(test.habitat); !slices.Equal(test.want, got) {
			t.Errorf("%s: got %v, want %v", test.why, got, test.want)
		}
	}
}

func TestPeerConfigMap(t *testing.T) {
	resource, observed := habitat.PeerConfigMap("attic")
	check.Equal(t, "resource", decode(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: peer-watch-file, namespace: attic, labels: {habitat: "true"}}
data: {peer-watch-file: ""}
`), resource)
	check.Equal(t, "observer schema", decode(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: peer-watch-file, namespace: null, labels: {habitat: null}}
`), observed)

	mangled, findings := schema.Mangle([]any{resource}, []any{observed})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	documents := mangled.Documents()
	if len(documents) != 1 {
		t.Fatalf("%d schemas", len(documents))
	}
	check.Equal(t, "what is observed", observed, documents[0])
}
