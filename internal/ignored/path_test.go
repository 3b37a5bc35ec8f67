package ignored

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {"a/b": x, "c~d": y}}
spec:
  replicas: 2
  x: {"a.b": 1, "": 2, "0": 3}
  template:
    spec:
      containers:
      - {name: web, image: "web:1", args: [serve, --debug], weight: 1}
      - {name: proxy, image: "proxy:1", weight: 2.5}
      volumes: []
`

// texts returns the places in a form that people read. Lists have an asterisk.
func (f places) texts() []string {
	var texts []string
	for _, path := range f.paths {
		texts = append(texts, path.String())
	}
	for _, list := range f.lists {
		texts = append(texts, list.String()+"*")
	}
	return texts
}

// A JSON pointer selects a field, or an element by its index. A place that does not exist is not
// ignored. An index of a list lets the list get longer.
func TestPointers(t *testing.T) {
	for pointer, want := range map[string][]string{
		"":                                       {""},
		"/spec/replicas":                         {"spec.replicas"},
		"/spec/paused":                           nil,
		"/metadata/labels/a~1b":                  {`metadata.labels["a/b"]`},
		"/metadata/labels/c~0d":                  {"metadata.labels.c~d"},
		"/metadata/labels/c~01d":                 nil, // it is c~1d
		"/spec/x/0":                              {"spec.x.0"},
		"/spec/template/spec/containers/1/image": {"spec.template.spec.containers[1].image"},
		"/spec/template/spec/containers/1":       {"spec.template.spec.containers[1]", "spec.template.spec.containers*"},
		"/spec/template/spec/containers/-":       nil,
		"/spec/template/spec/containers/-1":      {"spec.template.spec.containers*"},
		"/spec/template/spec/containers/2/image": nil,
	} {
		p, err := pointerOf(pointer)
		check.Must(t, err)
		check.Equal(t, pointer, want, placesOf(parsed(t, deployment), p).texts())
	}
	for _, text := range []string{"spec/replicas", " /spec", ".spec"} {
		_, err := pointerOf(text)
		check.Fails(t, text, err, "a JSON pointer starts with a slash")
	}
}
