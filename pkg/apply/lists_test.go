package apply_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A patch names the elements of a list by index. Another client moves them between the read
// and the patch. Only our own element may change, wherever it is then.
func TestPatchOfAListThatHasMoved(t *testing.T) {
	const first, second = `{"name": "first", "port": 1}`, `{"name": "second", "port": 2}`
	for why, ports := range map[string]string{
		"another element is in front, so that the index is that of another one": `[{"name": "theirs", "port": 7}, ` + first + `, {"name": "second", "port": 2, "targetPort": 9}]`,
		"an element in front is gone, so that the index is that of none":        `[{"name": "second", "port": 2, "targetPort": 9}]`,
		"they have changed places": `[{"name": "second", "port": 2, "targetPort": 9}, ` + first + `]`,
	} {
		t.Run(why, func(t *testing.T) {
			f := newFixture(t)
			ref := f.service(t, `[`+first+`, `+second+`]`)
			stale := f.setPorts(t, ref, `[`+first+`, {"name": "second", "port": 2, "targetPort": 9}]`)
			moved := f.setPorts(t, ref, ports)

			after, err := f.Patch(t.Context(), ref, stale, secondToItself(t))
			kit.Must(t, err)
			want := portsOf(moved)
			want["second"] = int64(2)
			check.Equal(t, "ports", want, portsOf(after))
		})
	}
}

// secondToItself is the repair that sets the target port of the second port to its own number.
func secondToItself(t *testing.T) func(map[string]any) (schema.Patch, error) {
	t.Helper()
	desired := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"ports": []any{map[string]any{"name": "second", "targetPort": int64(2)}}},
	}
	document := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"ports": []any{
			map[string]any{"targetPort": nil},
			map[string]any{"observer_schema_list_min_length": int64(1), "observer_schema_list_max_length": int64(0), "observer_schema_list_key": "name"},
		}},
	}
	set, findings := schema.Mangle([]any{desired}, []any{document})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return func(live map[string]any) (schema.Patch, error) { return set[0].Patch(desired, live), nil }
}

func (f *fixture) service(t *testing.T, ports string) manifest.Ref {
	t.Helper()
	ref := manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: f.namespace, Name: "web"},
		Resource: gvr.GroupVersionResource{Version: "v1", Resource: "services"},
	}
	object := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": f.namespace},
		"spec": map[string]any{"clusterIP": "None", "ports": []any{map[string]any{"name": "temporary", "port": int64(9)}}},
	}
	_, err := f.Create(t.Context(), ref, object)
	kit.Must(t, err)
	f.setPorts(t, ref, ports)
	return ref
}

// setPorts changes the ports of the Service as another client.
func (f *fixture) setPorts(t *testing.T, ref manifest.Ref, ports string) map[string]any {
	t.Helper()
	patch := []byte(`{"spec": {"ports": ` + ports + `}}`)
	live, err := f.somebody.Resource(ref.Resource).Namespace(f.namespace).
		Patch(t.Context(), ref.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"})
	kit.Must(t, err)
	return live.Object
}

// portsOf returns the target port of each port, by name.
func portsOf(live map[string]any) map[string]any {
	named := map[string]any{}
	spec, _ := live["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		fields, _ := port.(map[string]any)
		name, _ := fields["name"].(string)
		named[name] = fields["targetPort"]
	}
	return named
}
