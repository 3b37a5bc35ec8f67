package admission

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// What the API server refuses to create is a warning at admission, and nothing is created by it.
func TestWhatTheAPIServerRefusesIsSaidAtAdmission(t *testing.T) {
	namespace := newNamespace(t)
	since := hub.Mark(t)
	const refused = ": the API server refuses it: "
	file := kit.YAML(t, kit.Application(namespace, "web", manifestOf("web")+`---
apiVersion: v1
kind: ConfigMap
metadata: {name: labelled, labels: {"a b": c}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: selects}
spec:
  selector: {matchLabels: {app: selects}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: web, image: web}]}
`))
	said := root.mustKubectl(t, file, "create", "--dry-run=server", "-f", "-")
	for _, want := range []string{
		"data.spec.manifest[1].metadata.labels" + refused + "Invalid value: name part must consist of",
		"data.spec.manifest[2].spec.template.metadata.labels" + refused + "Invalid value", // without the explanation in Kubernetes 1.33, where the value is no JSON
	} {
		if !strings.Contains(said, want) {
			t.Errorf("without %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "a b") {
		t.Errorf("the warnings have values:\n%s", said)
	}
	if strings.Count(said, refused) != 2 {
		t.Errorf("the Service is refused, too, or an object twice:\n%s", said)
	}
	tried := since.Requests(t, kit.By("system:serviceaccount:krake-system:krake-webhook"), kit.In(namespace))
	for _, r := range tried {
		if r.Verb != "create" || !strings.Contains(r.URI, "dryRun=All") {
			t.Errorf("%s %s", r, r.URI)
		}
	}
	if len(tried) != 3 {
		t.Errorf("%d dry runs", len(tried))
	}
}
