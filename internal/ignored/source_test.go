package ignored

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// The objects of the tools with one rule, and a Bundle with other fields.
const (
	argoRule  = `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop}, spec: {ignoreDifferences: [RULE]}}`
	fluxRule  = `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop}, spec: {driftDetection: {ignore: [RULE]}}}`
	fleetRule = `{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {diff: {comparePatches: [RULE]}}}`
	fleetSpec = `{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {RULE}}`
)

func replaced(source, rule string) string { return strings.Replace(source, "RULE", rule, 1) }

func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	documents, err := manifest.Decode([]byte(text))
	check.Must(t, err)
	object, ok := documents[0].(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return object
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: parsed(t, text)}
}

func read(t testing.TB, text string) Source {
	t.Helper()
	source, err := Read(parsed(t, text))
	check.Must(t, err)
	return source
}

// Of each tool: where the objects are, what they are marked by, and what the tool goes on doing.
func TestRead(t *testing.T) {
	for why, c := range map[string]struct{ source, name, namespace, marks, advice string }{
		"Argo CD": {
			`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop}, spec: {destination: {namespace: demo}, syncPolicy: {automated: {selfHeal: true}}}}`,
			"Argo CD Application shop", "demo", "the annotation argocd.argoproj.io/tracking-id: shop:GROUP/KIND:NAMESPACE/NAME, or the label app.kubernetes.io/instance: shop",
			"Argo CD goes on syncing these objects. Set spec.syncPolicy.automated.selfHeal of the Argo CD Application shop to false, so that two programs do not correct the same fields.",
		},
		"Argo CD, without self-heal": {
			`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: team}, spec: {syncPolicy: {automated: {prune: true}}}}`,
			"Argo CD Application shop", "",
			"the annotation argocd.argoproj.io/tracking-id: team_shop:GROUP/KIND:NAMESPACE/NAME, or the annotation argocd.argoproj.io/tracking-id: shop:GROUP/KIND:NAMESPACE/NAME, " +
				"or the label app.kubernetes.io/instance: team_shop, or the label app.kubernetes.io/instance: shop",
			"Argo CD goes on syncing these objects.",
		},
		"Flux": {
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop, namespace: flux}, spec: {targetNamespace: demo, driftDetection: {mode: enabled}}}`,
			"Flux HelmRelease shop", "demo", "the label helm.toolkit.fluxcd.io/name: shop and helm.toolkit.fluxcd.io/namespace: flux",
			"Flux goes on upgrading these objects. Set spec.driftDetection.mode of the Flux HelmRelease shop to warn or disabled, so that two programs do not correct the same fields.",
		},
		"Fleet": {
			`{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: git-shop}, spec: {defaultNamespace: other, namespace: demo, helm: {releaseName: shop}, correctDrift: {enabled: true}}}`,
			"Fleet Bundle git-shop", "demo", "the annotation meta.helm.sh/release-name: shop and meta.helm.sh/release-namespace: demo",
			"Fleet goes on deploying these objects. Set spec.correctDrift.enabled of the Fleet Bundle git-shop to false, so that two programs do not correct the same fields.",
		},
		"Fleet, without options": {
			`{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: git-shop}, spec: {}}`,
			"Fleet Bundle git-shop", "", "the annotation meta.helm.sh/release-name: git-shop", "Fleet goes on deploying these objects.",
		},
	} {
		t.Run(why, func(t *testing.T) {
			s := read(t, c.source)
			check.Equal(t, "name", c.name, s.String())
			check.Equal(t, "namespace", c.namespace, s.Namespace)
			check.Equal(t, "marks", c.marks, s.Marks())
			check.Equal(t, "advice", c.advice, s.Advice)
			check.Empty(t, "untranslated", s.untranslated)
		})
	}
}

// What is no object of these tools is an error that says what is wrong.
func TestReadRefuses(t *testing.T) {
	for source, want := range map[string]string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}`:                                                           "ConfigMap is not supported: name an Application of Argo CD, a HelmRelease of Flux or a Bundle of Fleet",
		`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {}}`:                                                 "metadata.name is missing",
		`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop}, spec: {ignoreDifferences: {}}}`:        "spec.ignoreDifferences: the type object is not possible there",
		`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop}, spec: {driftDetection: enabled}}`: "spec.driftDetection: the type string is not possible there",
		`{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {diff: {comparePatches: [x]}}}`:   "spec.diff.comparePatches: the type string is not possible there",
	} {
		_, err := Read(parsed(t, source))
		check.Fails(t, source, err, want)
	}
}

// An object belongs to a source by the whole mark. A copied one does not count, and a label counts only
// if no object has the annotation.
func TestManagedBy(t *testing.T) {
	const argo, flux, fleet = `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: team}}`,
		`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop, namespace: flux}, spec: {targetNamespace: demo}}`,
		`{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {namespace: demo}}`
	service := func(name, metadata string) *unstructured.Unstructured {
		return object(t, `{apiVersion: v1, kind: Service, metadata: {name: `+name+`, namespace: demo, `+metadata+`}}`)
	}
	tracked := func(id string) string { return `annotations: {argocd.argoproj.io/tracking-id: "` + id + `"}` }
	for why, c := range map[string]struct {
		source  string
		objects []*unstructured.Unstructured
		want    []string
	}{
		"the annotation names the object": {argo, []*unstructured.Unstructured{
			service("a", tracked("shop:/Service:demo/a")), service("b", tracked("shop:/Service:demo/a")), service("c", tracked("shops:/Service:demo/c")),
			service("d", tracked("shop:apps/Service:demo/d")), service("e", tracked("shop:/Service:other/e")), service("f", `labels: {app.kubernetes.io/instance: shop}`),
		}, []string{"a"}},
		"an Application in another namespace": {argo, []*unstructured.Unstructured{
			service("a", tracked("shop:/Service:demo/a")), service("b", tracked("team_shop:/Service:demo/b")),
		}, []string{"b"}},
		"by the label": {argo, []*unstructured.Unstructured{
			service("a", `labels: {app.kubernetes.io/instance: shop}`), service("b", `labels: {app.kubernetes.io/instance: other}`), service("c", "labels: {}"),
		}, []string{"a"}},
		"none": {argo, []*unstructured.Unstructured{service("a", "labels: {}")}, nil},
		"Flux": {flux, []*unstructured.Unstructured{
			service("a", `labels: {helm.toolkit.fluxcd.io/name: shop, helm.toolkit.fluxcd.io/namespace: flux}`),
			service("b", `labels: {helm.toolkit.fluxcd.io/name: shop, helm.toolkit.fluxcd.io/namespace: demo}`),
			service("c", `labels: {helm.toolkit.fluxcd.io/name: shop}`),
		}, []string{"a"}},
		"Fleet": {fleet, []*unstructured.Unstructured{
			service("a", `annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: demo}`),
			service("b", `annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: other}`),
			service("c", `labels: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: demo}`),
		}, []string{"a"}},
	} {
		var names []string
		for _, managed := range ManagedBy(read(t, c.source), c.objects) {
			names = append(names, managed.GetName())
		}
		check.Equal(t, why, c.want, names)
	}
}

// Each tool selects the objects of a rule in its own way.
func TestRulesSelect(t *testing.T) {
	web := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: demo, labels: {tier: front}, annotations: {owner: me}}}`)
	for _, c := range []struct {
		source, rule string
		want         bool
	}{
		{argoRule, `{group: apps, kind: Deployment, jsonPointers: [/spec]}`, true},
		{argoRule, `{group: "*", kind: "*", jsonPointers: [/spec]}`, true},
		{argoRule, `{group: apps, kind: StatefulSet, jsonPointers: [/spec]}`, false},
		{argoRule, `{group: apps, kind: Deployment, name: web, namespace: demo, jsonPointers: [/spec]}`, true},
		{argoRule, `{group: apps, kind: Deployment, name: "w*", jsonPointers: [/spec]}`, false},
		{fluxRule, `{paths: [/spec]}`, true},
		{fluxRule, `{paths: [/spec], target: {kind: Deployment}}`, true},
		{fluxRule, `{paths: [/spec], target: {kind: Deploy}}`, false},
		{fluxRule, `{paths: [/spec], target: {kind: "Deploy.*", name: "web|db", group: apps, version: v1, namespace: demo}}`, true},
		{fluxRule, `{paths: [/spec], target: {labelSelector: "tier in (front, back)", annotationSelector: owner=me}}`, true},
		{fluxRule, `{paths: [/spec], target: {labelSelector: "tier=back"}}`, false},
		{fleetRule, `{apiVersion: apps/v1, kind: Deployment, name: web, namespace: demo, jsonPointers: [/spec]}`, true},
		{fleetRule, `{apiVersion: apps/v1, kind: Deployment, jsonPointers: [/spec]}`, true},
		{fleetRule, `{apiVersion: apps/v1, kind: Deployment, name: db, operations: [{op: remove, path: /spec}]}`, false},
		{fleetRule, `{apiVersion: v1, kind: Deployment, operations: [{op: remove, path: /spec}]}`, false},
	} {
		s := read(t, replaced(c.source, c.rule))
		check.Empty(t, c.rule, s.untranslated)
		check.Equal(t, c.rule, c.want, s.rules[0].selects(web))
	}
}

// What cannot be translated is reported with its place and its text.
func TestUntranslated(t *testing.T) {
	for _, c := range []struct{ source, rule, want string }{
		{argoRule, `{group: "*", kind: "*"}, {group: "*", kind: "*", jqPathExpressions: [.spec, ".spec | keys"]}`, `spec.ignoreDifferences[1].jqPathExpressions[1]: ".spec | keys": it selects no field of the imported objects now`},
		{argoRule, `{group: "*", kind: "*", jqPathExpressions: [".spec["]}`, `spec.ignoreDifferences[0].jqPathExpressions[0]: ".spec[": unexpected token ")"`},
		{argoRule, `{group: "*", kind: "*", jqPathExpressions: ['.spec.template.spec.containers[1:]']}`, `spec.ignoreDifferences[0].jqPathExpressions[0] ignores nothing of Deployment web: ".spec.template.spec.containers[1:]": it selects a slice of a list: select the elements by [] or by their indices`},
		{argoRule, `{group: "*", kind: "*", jsonPointers: [spec]}`, `spec.ignoreDifferences[0].jsonPointers[0]: "spec": a JSON pointer starts with a slash`},
		{argoRule, `{group: "{apps,batch}", kind: "*"}`, `spec.ignoreDifferences[0]: "{apps,batch}": this pattern for group and kind is not supported`},
		{argoRule, `{group: "*", kind: "*", celExpressions: []}`, `spec.ignoreDifferences[0].celExpressions: this field is unknown`},
		{argoRule, `{group: "", kind: Service, jsonPointers: [/spec]}`, `spec.ignoreDifferences[0] selects none of the imported objects`},
		{argoRule, `{group: apps, kind: Deployment, managedFieldsManagers: [hpa]}`, `spec.ignoreDifferences[0].managedFieldsManagers[0]: hpa owns no field of the objects now, and an observer schema names fields`},
		{fluxRule, `{paths: [/spec], target: {name: "("}}`, `spec.driftDetection.ignore[0].target: "(" is not a regular expression`},
		{fleetRule, `{apiVersion: a/b/c}`, `spec.diff.comparePatches[0].apiVersion: `},
		{fleetRule, `{apiVersion: apps/v1, kind: Deployment, operations: [{op: move, path: /spec}]}`, `spec.diff.comparePatches[0].operations[0]: "move": "/spec": an observer schema names fields, and this operation ignores none`},
		{fleetSpec, `targets: [{clusterGroup: x}, {helm: {releaseName: x}}]`, `spec.targets[1].helm: it is for some clusters only`},
		{fleetSpec, `ignore: {conditions: [{type: Ready}]}`, `spec.ignore: it is about conditions, and no observer schema has the status`},
	} {
		translation := NewTranslation(read(t, replaced(c.source, c.rule)))
		_, err := translation.Apply(t.Context(), targetOf(t, deployment, nil))
		check.Must(t, err)
		lines := translation.Untranslated()
		if len(lines) != 1 || !strings.HasPrefix(lines[0], c.want) {
			t.Errorf("%s:\n%q\nwant %q", c.rule, lines, c.want)
		}
	}
}

// Objects that Fleet does without are not imported: the agent would create them again.
func TestLeavesOut(t *testing.T) {
	translation := NewTranslation(read(t, `{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: shop}, spec: {diff: {comparePatches: [
		{apiVersion: batch/v1, kind: Job, name: setup, operations: [{op: ignore}]}, {apiVersion: batch/v1, kind: Job, name: other, operations: [{op: ignore}]}]}}}`))
	check.Equal(t, "job", "the Fleet Bundle shop does without it by spec.diff.comparePatches[0].operations[0]",
		translation.LeavesOut(object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: setup}}`)))
	check.Equal(t, "service", "", translation.LeavesOut(object(t, `{apiVersion: v1, kind: Service, metadata: {name: setup}}`)))
	check.Equal(t, "untranslated", []string{"spec.diff.comparePatches[1].operations[0] selects none of the imported objects"}, slices.Sorted(slices.Values(translation.Untranslated())))
}
