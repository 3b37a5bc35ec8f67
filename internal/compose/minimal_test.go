package compose

import (
	_ "embed"
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

//go:embed testdata/shop.yaml
var shop string

func TestMinimalObservesWhatMakesAnObjectWork(t *testing.T) {
	objects, err := objectsIn("shop", []byte(shop))
	kit.Must(t, err)
	texts, err := Minimal(objects)
	kit.Must(t, err)
	var resources, custom []any
	for i, text := range texts {
		document, err := manifest.Decode(text)
		kit.Must(t, err)
		resources, custom = append(resources, objects[i].Value), append(custom, document...)
	}
	set, findings := schema.Mangle(resources, custom)
	if len(findings) > 0 {
		t.Fatalf("the observer schemas have findings: %v", findings)
	}
	want := map[string][]string{
		"Deployment": {
			"spec.selector.matchLabels.app",
			"spec.template.spec.containers[0].image", "spec.template.spec.containers[0].name", "spec.template.spec.containers[0].ports[0].containerPort",
			"spec.template.spec.initContainers[0].image", "spec.template.spec.initContainers[0].name",
		},
		"StatefulSet": {"spec.replicas", "spec.selector.matchLabels.app", "spec.template.spec.containers[0].image", "spec.template.spec.containers[0].name"},
		"CronJob":     {"spec.jobTemplate.spec.template.spec.containers[0].image", "spec.jobTemplate.spec.template.spec.containers[0].name"},
		"Service":     {"spec.ports[0].name", "spec.ports[0].port", "spec.ports[0].targetPort", "spec.selector.app"},
	}
	for i, resource := range resources {
		desired, _ := resource.(map[string]any)
		schemas, err := set.Of([]map[string]any{desired})
		kit.Must(t, err)
		var observed []string
		for _, value := range schemas[0].Values(desired, desired) {
			observed = append(observed, value.Path.String())
		}
		slices.Sort(observed)
		check.Equal(t, objects[i].Kind, want[objects[i].Kind], observed)
	}
}

// A sidecar may be added, and no container may be taken away.
func TestMinimalAcceptsSidecars(t *testing.T) {
	objects, err := objectsIn("shop", []byte(shop))
	kit.Must(t, err)
	texts, err := Minimal(objects)
	kit.Must(t, err)
	custom, err := manifest.Decode(texts[0])
	kit.Must(t, err)
	set, _ := schema.Mangle([]any{objects[0].Value}, custom)
	schemas, err := set.Of([]map[string]any{objects[0].Value})
	kit.Must(t, err)
	differs := func(containers string) bool {
		live, err := objectsIn("live", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 9, selector: {matchLabels: {app: web}}, template: {spec: {initContainers: [{name: init, image: \"busybox:1\"}], containers: ["+containers+"]}}}\n"))
		kit.Must(t, err)
		return len(schemas[0].Compare(objects[0].Value, live[0].Value)) > 0
	}
	const web = `{name: web, image: "nginx:1.27", ports: [{containerPort: 80}, {containerPort: 81}]}`
	for containers, want := range map[string]bool{
		web: false, web + ", {name: proxy, image: p}": false, "": true, `{name: web, image: "nginx:1.28", ports: [{containerPort: 80}]}`: true,
	} {
		check.Equal(t, "containers ["+containers+"]: differs", want, differs(containers))
	}
}
