package ignored

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// targetOf returns an object with its default observer schema. It is as it was applied, beside the
// managedFields.
func targetOf(t testing.TB, text string, managedFields []any) Target {
	t.Helper()
	desired, live := parsed(t, text), parsed(t, text)
	live["metadata"].(map[string]any)["managedFields"] = managedFields
	whole, err := schema.Default(desired)
	check.Must(t, err)
	document, err := yaml.Marshal(whole.Document())
	check.Must(t, err)
	return Target{Live: &unstructured.Unstructured{Object: live}, Manifest: desired, Schema: parsed(t, string(document)), Kind: apitypes.BuiltIn().Of(whole.ID())}
}

// pathsOf returns the paths in the live object of the values that an observer schema observes.
func pathsOf(target Target, observed schema.Schema) []schema.Path {
	var paths []schema.Path
	for _, value := range observed.Align(target.Kind).Values(target.Manifest, target.Live.Object) {
		paths = append(paths, value.Path)
	}
	slices.SortFunc(paths, comparePaths)
	return paths
}

// schemaOf returns the observer schema of an object. It has to be valid.
func schemaOf(t testing.TB, target Target) schema.Schema {
	t.Helper()
	set, findings := schema.Mangle([]any{target.Manifest}, []any{target.Schema})
	if len(findings) > 0 {
		t.Fatalf("%v\n%v", findings, target.Schema)
	}
	schemas, err := set.Of([]map[string]any{target.Manifest})
	check.Must(t, err)
	return schemas[0].Align(target.Kind)
}

func observedIn(t testing.TB, target Target) []schema.Path {
	t.Helper()
	return pathsOf(target, schemaOf(t, target))
}

func desiredIn(t testing.TB, target Target) []schema.Path {
	t.Helper()
	whole, err := schema.Default(target.Manifest)
	check.Must(t, err)
	return pathsOf(target, whole)
}

// checkFree fails if a change of values in the live object is drift.
func checkFree(t testing.TB, target Target, values []schema.Path) {
	t.Helper()
	live := runtime.DeepCopyJSON(target.Live.Object)
	check.Empty(t, "drift", schemaOf(t, target).Compare(target.Manifest, live))
	for _, path := range values {
		setAt(live, path, "changed")
	}
	check.Empty(t, "drift by changes of what is ignored", schemaOf(t, target).Compare(target.Manifest, live))
}

func without(all, others []schema.Path) []schema.Path {
	return slices.DeleteFunc(slices.Clone(all), func(path schema.Path) bool {
		return slices.ContainsFunc(others, func(other schema.Path) bool { return slices.Equal(path, other) })
	})
}

// texts returns paths in the form that people read, without the mark of Argo CD.
func texts(paths []schema.Path) []string {
	var all []string
	for _, path := range paths {
		if text := path.String(); !strings.Contains(text, argoTracking) {
			all = append(all, text)
		}
	}
	return all
}

// What a rule ignores leaves the observer schema, and with it the objects that are empty without it.
func TestApply(t *testing.T) {
	const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, team: shop}, annotations: {note: x, argocd.argoproj.io/tracking-id: "shop:apps/Deployment:/web"}}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: 1}}
  template:
    spec:
      containers:
      - {name: web, image: "web:1", args: [serve, --debug]}
      - {name: proxy, image: "proxy:1"}
`
	const song = `
apiVersion: example.org/v1
kind: Song
metadata: {name: web}
spec: {parts: [{name: a}, {name: b}], keys: [c, d]}
`
	for _, c := range []struct {
		why, object, rule string
		// gone are the paths that are observed without the rule only. If they are elements, they leave the
		// manifest, too. open are the lists of any length.
		gone       []string
		isElements bool
		open       []string
		notes      []string
	}{
		{"a field", web, `jsonPointers: [/spec/replicas]`, []string{"spec.replicas"}, false, nil, nil},
		{"the last field of an object", web, `jsonPointers: [/spec/strategy/rollingUpdate/maxSurge]`, []string{"spec.strategy.rollingUpdate.maxSurge"}, false, nil, nil},
		{"all labels", web, `jsonPointers: [/metadata/labels]`, []string{"metadata.labels.app", "metadata.labels.team"}, false, nil, nil},
		{"a field of an element", web, `jsonPointers: [/spec/template/spec/containers/1/image]`, []string{"spec.template.spec.containers[1].image"}, false, nil, nil},
		{"a field of all elements", web, `jqPathExpressions: [".spec.template.spec.containers[].image"]`,
			[]string{"spec.template.spec.containers[0].image", "spec.template.spec.containers[1].image"}, false, nil, nil},
		{"the key of an element", web, `jsonPointers: [/spec/template/spec/containers/0/name, /spec/replicas]`, []string{"spec.replicas"}, false, nil,
			[]string{"spec.template.spec.containers[0].name of Deployment web is observed, although the Argo CD Application shop ignores it by spec.ignoreDifferences[0].jsonPointers[0]: it identifies the element of the list"}},
		{"an element", web, `jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "web")']`,
			[]string{"spec.template.spec.containers[0].args[0]", "spec.template.spec.containers[0].args[1]", "spec.template.spec.containers[0].image", "spec.template.spec.containers[0].name"},
			true, []string{"spec.template.spec.containers"}, nil},
		{"the last element, by an expression", web, `jqPathExpressions: [".spec.template.spec.containers | last"]`,
			[]string{"spec.template.spec.containers[1].image", "spec.template.spec.containers[1].name"}, true, []string{"spec.template.spec.containers"}, nil},
		{"an element that does not exist yet", web, `jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "istio-proxy")']`, nil, false, nil,
			[]string{`spec.ignoreDifferences[0].jqPathExpressions[0]: ".spec.template.spec.containers[] | select(.name == \"istio-proxy\")": it selects no field of the imported objects now`}},
		{"the last of plain values", web, `jsonPointers: [/spec/template/spec/containers/0/args/1]`, []string{"spec.template.spec.containers[0].args[1]"},
			true, []string{"spec.template.spec.containers[0].args"}, nil},
		{"the first of plain values", web, `jsonPointers: [/spec/template/spec/containers/0/args/0]`, nil, false, []string{"spec.template.spec.containers[0].args"},
			[]string{"spec.template.spec.containers[0].args[0] of Deployment web is observed, although the Argo CD Application shop ignores it by spec.ignoreDifferences[0].jsonPointers[0]: the elements after it are found by their places"}},
		{"the first of elements without a key", song, `jsonPointers: [/spec/parts/0]`, []string{"spec.parts[0].name"}, false, []string{"spec.parts"},
			[]string{"spec.parts[0] of Song web may change, and may not be removed: the elements after it are found by their places"}},
		{"the last of elements without a key", song, `jsonPointers: [/spec/parts/1]`, []string{"spec.parts[1].name"}, true, []string{"spec.parts"}, nil},
		{"nothing that is observed", web, `jsonPointers: [/status, /spec/paused, /spec/template/spec/volumes/0]`, nil, false, nil, nil},
		{"the identity", web, `jsonPointers: [/kind, /spec/replicas]`, []string{"spec.replicas"}, false, nil,
			[]string{"kind of Deployment web is observed, although the Argo CD Application shop ignores it by spec.ignoreDifferences[0].jsonPointers[0]: it identifies the object"}},
		{"the whole object", song, `jsonPointers: [""]`, []string{"spec.keys[0]", "spec.keys[1]", "spec.parts[0].name", "spec.parts[1].name"}, false, nil, nil},
		{"what a manager owns", web, `managedFieldsManagers: [hpa]`, []string{"spec.replicas", "spec.template.spec.containers[1].image"}, false, nil, nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			target := targetOf(t, c.object, []any{
				map[string]any{"manager": "hpa", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": parsed(t, `{"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"proxy"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}`)},
				map[string]any{"manager": "argocd", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": parsed(t, `{"f:spec": {"f:replicas": {}, "f:strategy": {}}}`)},
			})
			before := observedIn(t, target)
			translation := NewTranslation(read(t, replaced(argoRule, `{group: "*", kind: "*", `+c.rule+`}`)))
			change, err := translation.Apply(t.Context(), target)
			check.Must(t, err)
			gone := without(before, observedIn(t, target))
			check.Equal(t, "not observed", c.gone, texts(gone))
			checkFree(t, target, gone)
			var moved []string
			if c.isElements {
				moved = c.gone
			}
			check.Equal(t, "not in the manifest", moved, texts(without(before, desiredIn(t, target))))
			check.Equal(t, "of any length", c.open, texts(change.Open))
			check.Equal(t, "not translated", c.notes, translation.Untranslated())
		})
	}
}

// A user reads in the observer schema which rule of which tool ignores a field. The marks of the tool
// come and go with it.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		source, metadata string
		want             []string
	}{
		{
			replaced(argoRule, `{group: apps, kind: Deployment, jsonPointers: [/spec/replicas], jqPathExpressions: [.spec.replicas, .spec.paused], managedFieldsManagers: [hpa]}`),
			`{name: web, annotations: {argocd.argoproj.io/tracking-id: x}, labels: {app.kubernetes.io/instance: shop}}`,
			[]string{
				"metadata.annotations[\"argocd.argoproj.io/tracking-id\"]: the Argo CD Application shop marks its objects by it",
				"spec.minReadySeconds: the Argo CD Application shop ignores what hpa writes by spec.ignoreDifferences[0].managedFieldsManagers[0]",
				"spec.paused: the Argo CD Application shop ignores it by spec.ignoreDifferences[0].jqPathExpressions[1]",
				"spec.replicas: the Argo CD Application shop ignores it by spec.ignoreDifferences[0].jsonPointers[0]",
			},
		},
		{
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop}, spec: {driftDetection: {ignore: [{paths: [/spec/replicas]}]}}}`,
			`{name: web, labels: {helm.toolkit.fluxcd.io/name: shop, helm.toolkit.fluxcd.io/namespace: flux}}`,
			[]string{
				"metadata.labels[\"helm.toolkit.fluxcd.io/name\"]: the Flux HelmRelease shop marks its objects by it",
				"metadata.labels[\"helm.toolkit.fluxcd.io/namespace\"]: the Flux HelmRelease shop marks its objects by it",
				"spec.replicas: the Flux HelmRelease shop ignores it by spec.driftDetection.ignore[0].paths[0]",
			},
		},
		{
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop}}`, `{name: web, annotations: {helm.toolkit.fluxcd.io/driftDetection: disabled}}`,
			[]string{
				"metadata.annotations: the Flux HelmRelease shop ignores it by helm.toolkit.fluxcd.io/driftDetection of the object",
				"spec: the Flux HelmRelease shop ignores it by helm.toolkit.fluxcd.io/driftDetection of the object",
			},
		},
		{
			`{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {diff: {comparePatches: [{apiVersion: apps/v1, kind: Deployment, jsonPointers: [/metadata/labels],
				operations: [{op: remove, path: /spec/replicas}, {op: replace, path: /spec/paused, value: "true"}, {op: add, path: /spec/minReadySeconds, value: "1"}]}]}}}`,
			`{name: web, labels: {objectset.rio.cattle.io/hash: x}, annotations: {meta.helm.sh/release-name: shop}}`,
			[]string{
				"metadata.annotations[\"meta.helm.sh/release-name\"]: the Fleet Bundle shop marks its objects by it",
				"metadata.labels: the Fleet Bundle shop ignores it by spec.diff.comparePatches[0].jsonPointers[0]",
				"spec.minReadySeconds: the Fleet Bundle shop ignores it by spec.diff.comparePatches[0].operations[2]",
				"spec.paused: the Fleet Bundle shop ignores it by spec.diff.comparePatches[0].operations[1]",
				"spec.replicas: the Fleet Bundle shop ignores it by spec.diff.comparePatches[0].operations[0]",
			},
		},
	} {
		hpa := map[string]any{"manager": "hpa", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": parsed(t, `{"f:spec": {"f:replicas": {}, "f:minReadySeconds": {}}}`)}
		target := targetOf(t, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2, paused: true, minReadySeconds: 3}, metadata: "+c.metadata+"}", []any{hpa})
		translation := NewTranslation(read(t, c.source))
		change, err := translation.Apply(t.Context(), target)
		check.Must(t, err)
		var reasons []string
		for _, ignored := range change.Ignored {
			reasons = append(reasons, ignored.Path.String()+": "+ignored.Reason)
		}
		check.Equal(t, c.source, c.want, reasons)
		check.Empty(t, "not translated", translation.Untranslated())
	}
}

// Whatever the rules of a file are, the observer schema stays valid and observes nothing more. It fits
// the live object, also after changes of what is ignored.
func FuzzApply(f *testing.F) {
	for _, rule := range []string{
		`jsonPointers: [/spec/replicas, /metadata/labels/a~1b]`, `jsonPointers: [""]`, `jsonPointers: [/spec/template/spec/containers/0, /spec/template/spec/containers/1]`,
		`jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "web")', .metadata]`, `jqPathExpressions: ['.spec.template.spec.containers[].args[0]', '..', '.spec | .[keys[0]]']`,
		`managedFieldsManagers: [hpa]`, `name: web, jsonPointers: [/spec/template/spec/containers/0/args/0]`,
	} {
		f.Add(replaced(argoRule, `{group: "*", kind: "*", `+rule+`}`))
	}
	f.Add(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop}, spec: {driftDetection: {ignore: [{paths: [/spec], target: {kind: "D.*", labelSelector: a/b}}]}}}`)
	f.Add(`{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {diff: {comparePatches: [{apiVersion: apps/v1, kind: Deployment, operations: [{op: remove, path: /spec}, {op: ignore}]}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := manifest.Decode([]byte(text))
		if err != nil || len(documents) != 1 {
			return
		}
		read, _ := documents[0].(map[string]any)
		source, err := Read(read)
		if err != nil {
			return
		}
		target := targetOf(t, deployment, []any{
			map[string]any{"manager": "hpa", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}},
		})
		before := observedIn(t, target)
		translation := NewTranslation(source)
		ManagedBy(source, []*unstructured.Unstructured{target.Live})
		translation.LeavesOut(target.Live)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err = translation.Apply(ctx, target); errors.Is(err, context.DeadlineExceeded) {
			return
		}
		check.Must(t, err)
		translation.Untranslated()
		after := observedIn(t, target)
		check.Empty(t, "observed by rules", without(after, before))
		checkFree(t, target, without(before, after))
	})
}
