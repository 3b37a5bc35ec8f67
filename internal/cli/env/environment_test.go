package env

import (
	"errors"
	"testing"

	"k8s.io/client-go/openapi"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// describer is the OpenAPI document of an API server.
type describer struct {
	text  string
	reads int
}

func (d *describer) Paths() (map[string]openapi.GroupVersion, error) {
	return map[string]openapi.GroupVersion{"apis/stage.example.com/v1": d}, nil
}

func (d *describer) ServerRelativeURL() string { return "/openapi/v3/apis/stage.example.com/v1" }

func (d *describer) Schema(string) ([]byte, error) {
	d.reads++
	return []byte(d.text), nil
}

const concertDescription = `{"components": {"schemas": {"Concert": {"type": "object",
	"x-kubernetes-group-version-kind": [{"group": "stage.example.com", "version": "v1", "kind": "Concert"}],
	"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
		"parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
			"items": {"type": "object", "properties": {"name": {"type": "string"}}}}}}}}}`

// The commands read the types of custom kinds once from the cluster. Without the cluster, or its description, they go on.
func TestTypesOn(t *testing.T) {
	concert := manifest.ID{APIVersion: "stage.example.com/v1", Kind: "Concert", Name: "opening"}
	for _, c := range []struct {
		why, text string
		err       error
		want      []schema.Key
	}{
		{"described", concertDescription, nil, []schema.Key{{Name: "name", KeepsZero: true}}},
		{"not described", "{", nil, nil},
		{"without a cluster", concertDescription, errors.New("no cluster"), nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			server, connections := &describer{text: c.text}, 0
			typesOf := TypesOn(func(string) (Objects, error) {
				connections++
				return Objects{described: server}, c.err
			}, "local")
			check.Equal(t, "the types of a built-in kind", true, typesOf(manifest.ID{APIVersion: "v1", Kind: "Pod"}) == nil && connections == 0)
			for range 2 {
				found, want := typesOf(concert), c.want
				switch {
				case want == nil && found != nil:
					t.Error("there are types")
				case want != nil:
					check.Equal(t, "keys", want, found.Of(concert).Field("parts").Keys())
				}
			}
			if connections != 1 || server.reads > 1 {
				t.Errorf("%d connections, %d documents read", connections, server.reads)
			}
		})
	}
}
