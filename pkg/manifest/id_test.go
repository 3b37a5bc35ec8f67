package manifest_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestIdentify(t *testing.T) {
	tests := []struct {
		why  string
		yaml string
		want manifest.ID
		err  string
	}{
		{
			why:  "all four parts are read",
			yaml: "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: demo, name: web}}",
			want: manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"},
		},
		{
			why:  "a namespace that is not said, or null, is empty",
			yaml: "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: null}}",
			want: manifest.ID{APIVersion: "v1", Kind: "Service", Name: "web"},
		},
		{
			why:  "every missing part is named, not only the first",
			yaml: "{spec: {}}",
			err:  "the resource lacks apiVersion, kind, metadata.name",
		},
		{
			why:  "metadata of another type is as good as none",
			yaml: "{apiVersion: v1, kind: Service, metadata: web}",
			err:  "the resource lacks metadata.name",
		},
		{
			why:  "an unquoted number is no name",
			yaml: "{apiVersion: v1, kind: Service, metadata: {name: 8080}}",
			err:  "the resource lacks metadata.name",
		},
		{
			why:  "an empty text is no kind",
			yaml: "{apiVersion: v1, kind: '', metadata: {name: web}}",
			err:  "the resource lacks kind",
		},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			got, err := manifest.Identify(object(t, test.yaml))
			check.Equal(t, "identity", test.want, got)
			check.Equal(t, "error", test.err, check.Message(err))
		})
	}
}

func TestIDString(t *testing.T) {
	namespaced := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	check.Equal(t, "with a namespace", "apps/v1 Deployment demo/web", namespaced.String())
	clusterScoped := manifest.ID{APIVersion: "v1", Kind: "Node", Name: "n1"}
	check.Equal(t, "without a namespace", "v1 Node n1", clusterScoped.String())
}

func TestGroupVersionKind(t *testing.T) {
	tests := map[string]schema.GroupVersionKind{
		"apps/v1": {Group: "apps", Version: "v1", Kind: "K"},
		"v1":      {Version: "v1", Kind: "K"},
		"a/b/c":   {Kind: "K"}, // does not parse: no server has such a kind
	}
	for apiVersion, want := range tests {
		check.Equal(t, apiVersion, want, manifest.ID{APIVersion: apiVersion, Kind: "K"}.GroupVersionKind())
	}
}

// config returns the identity of a ConfigMap "a" in the namespace.
func config(namespace string) manifest.ID {
	return manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "a"}
}

func TestFind(t *testing.T) {
	v2 := config("x")
	v2.APIVersion = "v2"
	tests := []struct {
		why    string
		ids    []manifest.ID
		wanted manifest.ID
		want   int
	}{
		{"an equal namespace is better than one that is not said", []manifest.ID{config(""), config("x")}, config("x"), 1},
		{"one side without a namespace matches any", []manifest.ID{config("y")}, config(""), 0},
		{"no namespace on both sides is better", []manifest.ID{config("y"), config("")}, config(""), 1},
		{"the other side too", []manifest.ID{config("")}, config("y"), 0},
		{"two different namespaces are two resources", []manifest.ID{config("y")}, config("x"), -1},
		{"of several that match loosely the first wins", []manifest.ID{config("y"), config("z")}, config(""), 0},
		{"another version of the API is another resource", []manifest.ID{v2}, config("x"), -1},
		{"another kind is another resource", []manifest.ID{{APIVersion: "v1", Kind: "Secret", Namespace: "x", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Name: "a"}}, config("x"), -1},
		{"another name is another resource", []manifest.ID{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: "b"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "b"}}, config("x"), -1},
		{"nothing is in nothing", nil, config("x"), -1},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			check.Equal(t, "index", test.want, manifest.Pair([]manifest.ID{test.wanted}, test.ids)[0])
		})
	}
}

func TestPair(t *testing.T) {
	tests := []struct {
		why         string
		left, right []manifest.ID
		want        []int
	}{
		{
			why:  "the k-th without a namespace belongs to the k-th of that name",
			left: []manifest.ID{config(""), config("")}, right: []manifest.ID{config("x"), config("y")},
			want: []int{0, 1},
		},
		{
			why:  "equal namespaces are paired first, in whatever order they stand",
			left: []manifest.ID{config(""), config("x")}, right: []manifest.ID{config("x"), config("y")},
			want: []int{1, 0},
		},
		{
			why:  "no partner is given twice",
			left: []manifest.ID{config("x"), config("x")}, right: []manifest.ID{config("x")},
			want: []int{0, -1},
		},
		{
			why:  "different namespaces never pair",
			left: []manifest.ID{config("x")}, right: []manifest.ID{config("y")},
			want: []int{-1},
		},
		{
			why:  "without a right side nobody has a partner",
			left: []manifest.ID{config("x")},
			want: []int{-1},
		},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			check.Equal(t, "partners", test.want, manifest.Pair(test.left, test.right))
		})
	}
}

// A schema names no namespace, so a resource without one is no better a match.
func TestPairNamesakes(t *testing.T) {
	schemas, resources := []manifest.ID{config(""), config(""), config("")}, []manifest.ID{config("x"), config("")}
	check.Equal(t, "schemas to resources", []int{0, 1, -1}, manifest.PairNamesakes(schemas, resources))
	check.Equal(t, "resources to schemas", []int{0, 1}, manifest.PairNamesakes(resources, schemas))
}

// object decodes the text of one resource.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	resources, err := manifest.Decode([]byte(text))
	if err != nil || len(resources) != 1 {
		t.Fatalf("%d resources, error %v in:\n%s", len(resources), err, text)
	}
	fields, ok := resources[0].(map[string]any)
	if !ok {
		t.Fatalf("no object: %s", text)
	}
	return fields
}
