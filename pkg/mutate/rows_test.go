package mutate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// The rows of the threat model about the input of users. Rows with cases in testdata/bad are
// judged there. The tests here check that the cases cover the row.

// refusedPlaces returns the places of all refusals of a file, with their numbers.
func refusedPlaces(t *testing.T, file string) map[string]int {
	t.Helper()
	places := map[string]int{}
	for _, input := range badInputs(t, file) {
		got := input.judge(t)
		input.check(t, got)
		for _, refusal := range got.refusals {
			places[refusal.Field]++
		}
	}
	return places
}

// Threat A16 of the security specification: fields of the server and of the garbage
// collector are neither observed nor set.
func TestFieldsOfTheServerAreNeitherObservedNorSet(t *testing.T) {
	places := refusedPlaces(t, "server_owned.yaml")
	observed, set := 0, 0
	for _, name := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"selfLink", "managedFields", "ownerReferences", "finalizers", "generateName", "clusterName",
	} {
		observed += min(1, places["data.spec.observer_schema[0].metadata."+name])
		set += min(1, places["data.spec.manifest[0].metadata."+name])
	}
	for _, name := range []string{"status", "spec.nodeName", "metadata.unknown"} {
		observed += min(1, places["data.spec.observer_schema[0]."+name])
	}
	t.Logf("%d paths are refused in an observer schema, %d in a manifest", observed, set)
	if observed != 15 || set != 12 {
		t.Errorf("not all paths are refused: %v", places)
	}
}

// Threat A22 of the security specification: the API server may call a webhook twice for one
// request, and the second call changes neither the Application nor the answer. KRAKE_A22 is
// the number of requests, 100000 for the whole proof.
func TestASecondCallOfTheWebhookChangesNothing(t *testing.T) {
	requests := 5_000
	if testing.Short() {
		requests = 1_000
	}
	if text := os.Getenv("KRAKE_A22"); text != "" {
		var err error
		if requests, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	generator := newGenerator(t)
	admitted := map[string]int{}
	for i := range requests {
		stored := generator.stored(t)
		cm := generator.request(stored)
		kind := "create"
		if stored != nil {
			kind = "update"
		}
		if checkPrepared(t, cm, stored) {
			admitted[kind]++
		} else {
			admitted["refused "+kind]++
		}
		if t.Failed() {
			t.Fatalf("request %d", i)
		}
	}
	t.Logf("%d requests: %v", requests, admitted)
	for _, kind := range []string{"create", "update", "refused create", "refused update"} {
		if admitted[kind] < requests/20 {
			t.Errorf("the generator makes too few of a kind: %v", admitted)
		}
	}
}

// generator makes plausible and hostile requests, the same in each run.
type generator struct {
	random *rand.Rand
	// hostile specs are those of the corpus. plausible ones are accepted.
	hostile, plausible []application.Spec
}

func newGenerator(t *testing.T) *generator {
	t.Helper()
	g := &generator{random: rand.New(rand.NewPCG(22, 4))}
	g.plausible = append(g.plausible, song(), application.Spec{Manifest: storedManifest})
	for _, file := range badFiles(t) {
		for _, input := range badInputs(t, file) {
			cm, _ := input.request(t)
			spec := application.SpecOf(cm)
			switch {
			case len(spec.Manifest)+len(spec.ObserverSchema) > mostSeed:
			case input.Accepted:
				g.plausible = append(g.plausible, spec)
			default:
				g.hostile = append(g.hostile, spec)
			}
		}
	}
	return g
}

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func pick[T any](g *generator, from []T) T { return from[g.random.IntN(len(from))] }

// stored returns an Application as an agent left it, sometimes a plain ConfigMap, and often
// nil.
func (g *generator) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	if g.chance(40) {
		return nil
	}
	cm := g.request(nil)
	if prepared := mutate.PrepareForCreate(cm); len(prepared.Refusals) > 0 {
		return nil
	}
	if g.chance(70) {
		learned(t, cm)
	}
	if g.chance(10) {
		delete(cm.Annotations, "krake.dev/application")
	}
	if g.chance(10) {
		forge(cm)
	}
	cm.UID, cm.ResourceVersion = "u1", "7"
	return cm
}

func (g *generator) request(stored *corev1.ConfigMap) *corev1.ConfigMap {
	cm := submitted()
	if stored != nil {
		cm = stored.DeepCopy()
		if cm.Annotations == nil {
			cm.Annotations = map[string]string{}
		}
		if cm.Labels == nil {
			cm.Labels = map[string]string{}
		}
		cm.Annotations["krake.dev/application"] = "v1"
	}
	if stored == nil || g.chance(60) {
		spec := pick(g, g.plausible)
		if g.chance(25) {
			spec = pick(g, g.hostile)
		}
		cm.Data["spec.manifest"] = spec.Manifest
		delete(cm.Data, "spec.observer_schema")
		if spec.ObserverSchema != "" {
			cm.Data["spec.observer_schema"] = spec.ObserverSchema
		}
		if g.chance(15) {
			cm.Data["spec.manifest"] += "\n---\n" + pick(g, g.plausible).Manifest
		}
	}
	g.decorate(cm)
	return cm
}

// decorate changes fields outside the spec.
func (g *generator) decorate(cm *corev1.ConfigMap) {
	if g.chance(30) {
		forge(cm)
	}
	if g.chance(20) {
		cm.Annotations["krake.dev/cluster"] = pick(g, []string{"local", "edge", "far", ""})
	}
	if g.chance(5) {
		cm.Annotations["krake.dev/service-account"] = pick(g, []string{"deployer", "default", "a/b"})
	}
	if g.chance(20) {
		cm.Finalizers = pick(g, [][]string{nil, {"example.org/a"}, {"local.krake.dev/resources"}, {"example.org/b", "far.krake.dev/resources", "example.org/a"}})
	}
	if g.chance(20) {
		cm.Labels = pick(g, []map[string]string{nil, {"team": "red"}, {"krake.dev/state": "forged", "holder.krake.dev/far": "true"}})
	}
	if g.chance(5) {
		cm.Annotations[pick(g, []string{"krake.dev/x", "krake.dev/force-delete", "note"})] = "true"
	}
	if g.chance(3) {
		cm.Immutable = new(g.chance(50))
	}
}

// Threat A23 of the security specification: an input one hundredth below a limit is accepted,
// and one above it is refused with the limit and the number of bytes or objects.
func TestSizesAreRefusedJustAboveTheirLimits(t *testing.T) {
	config := func(bytes int) string {
		const before, after = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: ", "}}"
		return before + strings.Repeat("x", bytes-len(before)-len(after)) + after
	}
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}}\n", i)
		}
		return b.String()
	}
	spec := func(manifest, schema string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": manifest}
			if schema != "" {
				cm.Data["spec.observer_schema"] = schema
			}
		}
	}
	const whole, annotations = 1 << 20, 256 << 10
	tests := []struct {
		why    string
		change func(cm *corev1.ConfigMap)
		want   []any
	}{
		{"a manifest of 0.99 of the limit", spec(config(mutate.MaxSpecBytes*99/100), ""), []any{}},
		{"a manifest of 1.01 of the limit", spec(config(mutate.MaxSpecBytes*101/100), ""), []any{
			"data: Invalid value: spec.manifest and spec.observer_schema have 264765 bytes together; the maximum is 262144: split the Application",
		}},
		{"manifest and schema of 0.99 of the limit", spec(config(mutate.MaxSpecBytes/2), "#"+strings.Repeat("x", mutate.MaxSpecBytes*49/100)), []any{}},
		{"manifest and schema of 1.01 of the limit", spec(config(mutate.MaxSpecBytes/2), "#"+strings.Repeat("x", mutate.MaxSpecBytes*51/100)), []any{
			"data: Invalid value: spec.manifest and spec.observer_schema have 264766 bytes together; the maximum is 262144: split the Application",
		}},
		{"a manifest that a ConfigMap has no room for", spec(config(whole*11/10), ""), []any{
			"data: Invalid value: spec.manifest and spec.observer_schema have 1153433 bytes together; the maximum is 262144: split the Application",
		}},
		{"99 objects", spec(many(99), ""), []any{}},
		{"101 objects", spec(many(101), ""), []any{
			"data.spec.manifest: Invalid value: document 101: more than 100 resources are not possible: split the text",
		}},
		{"other data up to 0.99 of a ConfigMap", func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": storedManifest, "note": strings.Repeat("x", whole*99/100)}
		}, []any{}},
		{"other data that leaves no room for what is to come", func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": storedManifest, "note": strings.Repeat("x", whole-300)}
		}, []any{"data: Invalid value: "}},
		{"other data up to 1.01 of a ConfigMap", func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": storedManifest, "note": strings.Repeat("x", whole*101/100)}
		}, []any{"data: Invalid value: "}},
		{"binary data up to 1.01 of a ConfigMap", func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": storedManifest}
			cm.BinaryData = map[string][]byte{"note": make([]byte, whole*101/100)}
		}, []any{"data: Invalid value: "}},
		{"annotations up to 0.99 of the limit", func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": storedManifest}
			cm.Annotations["note"] = strings.Repeat("x", annotations*99/100)
		}, []any{}},
		{"annotations up to 1.01 of the limit", func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"spec.manifest": storedManifest}
			cm.Annotations["note"] = strings.Repeat("x", annotations*101/100)
		}, []any{"metadata.annotations: Invalid value: they have 264792 bytes; the maximum is 262144: kubectl apply copies the whole ConfigMap into one, kubectl apply --server-side does not"}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm := submitted()
			test.change(cm)
			got := judge(cm, nil, "")
			told := messages(got.refusals)
			if len(test.want) == 1 && len(told) == 1 && strings.HasSuffix(fmt.Sprint(test.want[0]), ": ") { // the bytes of the status count, too
				text := fmt.Sprint(told[0])
				if !strings.HasPrefix(text, "data: Invalid value: the ConfigMap would have 10") || !strings.Contains(text, "the maximum is 1048576") {
					t.Errorf("got %s", text)
				}
				t.Log(text)
				return
			}
			check.Equal(t, "refusals", test.want, told)
			if got.allocated > mostAllocated || got.taken > mostTime {
				t.Errorf("it takes %s and %d MiB", got.taken, got.allocated>>20)
			}
		})
	}
}

// Threat A24 of the security specification: nesting that is too deep is an error and no panic,
// in YAML and JSON, in a manifest and in an observer schema.
func TestDeepNestingIsAnErrorAndNoPanic(t *testing.T) {
	forms := map[string]func(depth int) string{
		"objects": func(depth int) string { return strings.Repeat("{a: ", depth) + "1" + strings.Repeat("}", depth) },
		"lists":   func(depth int) string { return strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth) },
	}
	for name, form := range forms {
		for _, depth := range []int{62, 63, 64, 10_000} {
			resource := func(nested string) string {
				return "{apiVersion: example.org/v1, kind: Song, metadata: {name: a}, spec: " + nested + "}"
			}
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": resource(form(depth))}
			got := judge(cm, nil, "")
			check.Equal(t, fmt.Sprintf("%d %s within the resource: refused", depth, name), depth+1 > manifest.MaxDepth, len(got.refusals) > 0)
		}
	}
	inputs := badInputs(t, "depth.yaml")
	for _, input := range inputs {
		input.check(t, input.judge(t))
	}
	t.Logf("and %d cases of testdata/bad/depth.yaml", len(inputs))
}

// Threat A25 of the security specification: aliases, anchors and merge keys of all kinds are
// refused before any expansion.
func TestAliasesAreRefusedBeforeTheyAreExpanded(t *testing.T) {
	var refused, most int
	for _, input := range badInputs(t, "aliases.yaml") {
		got := input.judge(t)
		input.check(t, got)
		if !input.Accepted {
			refused++
		}
		most = max(most, int(got.allocated>>20))
	}
	t.Logf("%d texts are refused, at the cost of %d MiB at most", refused, most)
	if refused < 20 {
		t.Errorf("there are only %d texts", refused)
	}
	if most > 32 {
		t.Errorf("%d MiB are allocated for a text of 256 KiB at most", most)
	}
}

// Threat A26 of the security specification: webhook, agent, kubectl and API server decode a
// text to the same value, or none of them accepts it. (FuzzDecodeAsKubectl does the same for
// new texts.)
func TestWebhookAgentAndKubectlReadTheSame(t *testing.T) {
	var all, accepted, byKubectl int
	for _, file := range badFiles(t) {
		for _, input := range badInputs(t, file) {
			cm, _ := input.request(t)
			for _, text := range cm.Data {
				all++
				ours, theirs := checkAsKubectl(t, []byte(text))
				if ours {
					accepted++
				}
				if theirs {
					byKubectl++
				}
			}
		}
	}
	t.Logf("%d texts, %d are read, %d of them by kubectl, too", all, accepted, byKubectl)
	if byKubectl < 100 {
		t.Error("there are too few to compare")
	}
}

// Threat A27 of the security specification: a declared length costs nothing, however large it
// is.
func TestADeclaredLengthCostsNothing(t *testing.T) {
	input := func(declared string) *corev1.ConfigMap {
		cm := submitted()
		cm.Data = map[string]string{
			"spec.manifest": "{apiVersion: v1, kind: Song, metadata: {name: a}, spec: {list: [1]}}",
			"spec.observer_schema": "{apiVersion: v1, kind: Song, metadata: {name: a}, spec: {list: [null, {observer_schema_list_min_length: " +
				declared + ", observer_schema_list_max_length: " + declared + "}]}}",
		}
		return cm
	}
	judge(input("1"), nil, "")
	small := judge(input("1"), nil, "").allocated
	for _, declared := range []string{"10000", "1000000000", "9223372036854775807", "9223372036854775808", "-1", "-9223372036854775808", "1e18"} {
		got := judge(input(declared), nil, "")
		t.Logf("%s: %d bytes, as against %d", declared, got.allocated, small)
		if got.allocated > 2*small+64<<10 {
			t.Errorf("a list of %s elements costs %d bytes, and one of 1 element %d", declared, got.allocated, small)
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	before := memory.Sys
	for _, input := range badInputs(t, "lengths.yaml") {
		input.check(t, input.judge(t))
	}
	runtime.ReadMemStats(&memory)
	t.Logf("memory of the process: %d KiB more", (memory.Sys-before)>>10)
}

// Threat A28 of the security specification: each object occurs once, whichever of its versions
// and groups is used, and with or without its namespace.
func TestAnObjectIsDescribedOnce(t *testing.T) {
	forms := []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: demo}}",
		"{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}",
		"{apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: a, namespace: demo}}",
		"{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a}}",
		"{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a, namespace: ''}}",
	}
	for i, first := range forms {
		for j, second := range forms {
			for _, scope := range []mutate.Scope{mutate.NamespaceScope, mutate.ClusterScope} {
				cm := submitted()
				cm.Data = map[string]string{"spec.manifest": first + "\n---\n" + second}
				got := texts(judge(cm, nil, scope).refusals)
				if len(got) != 1 || !strings.HasPrefix(got[0], "data.spec.manifest[1]: Invalid value: The resource is defined twice: ") {
					t.Errorf("%s beside %s, scope %s: %v", first, second, scope, got)
				}
			}
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": first + "\n---\n" + strings.ReplaceAll(second, "name: a", "name: b")}
			check.Empty(t, fmt.Sprintf("%d and %d with another name", i, j), judge(cm, nil, "").refusals)
		}
	}
	if !slices.Contains(badFiles(t), "duplicates.yaml") {
		t.Error("the cases of duplicates are gone")
	}
}
