package policies

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Messages of the policies krake-habitat and krake-habitat-workloads.
const (
	sayDeletes   = "the controller of Habitats deletes no ConfigMap: delete the Habitat, and what was made of it goes along"
	sayCreates   = "the controller of Habitats creates no ConfigMap but Applications of Habitats: name it habitat-NAME, and annotate it with krake.dev/application, and with krake.dev/generated-from as Habitat/NAME"
	sayTheirs    = "the controller of Habitats changes no ConfigMap but Applications that are annotated with krake.dev/generated-from as it does, and the peer file of its Application habitat-peers: leave this one to its owner"
	sayRemains   = "an Application of a Habitat remains one: leave the annotations krake.dev/application and krake.dev/generated-from as they are"
	saySettings  = "the controller of Habitats sets no annotations of an Application but krake.dev/application, krake.dev/cluster and krake.dev/generated-from: leave the others to users"
	sayTheKey    = "of the peer file the controller of Habitats changes data[peer-watch-file] alone: leave the rest to the agent, and to its owners"
	sayAddress   = "the peer file has one IP address, or none: write it, or an empty value"
	sayWorkloads = "the controller of Habitats writes no workloads: it writes Applications, and the agent what is in them"
	sayPods      = "the controller of Habitats deletes only Pods that have the label habitat=true: leave others to theirs"
	sayKinds     = "the controller of Habitats defines habitats.habitat.sh and no other kind, and deletes none: have an administrator do it"
)

// place is a namespace with Habitats that may own ConfigMaps.
type place struct {
	namespace   string
	shop, clerk types.UID
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{namespace: newNamespace(t)}
	resource := server.Dynamic.Resource(habitats).Namespace(p.namespace)
	for name, uid := range map[string]*types.UID{"shop": &p.shop, "clerk": &p.clerk} {
		created, err := resource.Create(t.Context(), habitatOf(v1beta2Habitat, "metadata: {name: "+name+"}"), metav1.CreateOptions{})
		kit.Must(t, err)
		*uid = created.GetUID()
	}
	return p
}

// ownedBy makes a Habitat an owner of a ConfigMap, as its controller or not. An
// optional kind replaces Habitat.
func (p place) ownedBy(name string, controller bool, kind ...string) edit {
	owner := metav1.OwnerReference{APIVersion: "habitat.sh/v1beta1", Kind: "Habitat", Name: name, UID: p.shop}
	if name == "clerk" {
		owner.UID = p.clerk
	}
	if controller {
		owner.Controller = &controller
	}
	if len(kind) > 0 {
		owner.APIVersion, owner.Kind = kind[0], kind[1]
	}
	return func(cm *corev1.ConfigMap) { cm.OwnerReferences = append(cm.OwnerReferences, owner) }
}

func generatedFrom(what string) edit { return annotate("krake.dev/generated-from", what) }

func notGenerated(cm *corev1.ConfigMap) { noAnnotation("krake.dev/generated-from")(cm) }

// generated makes a ConfigMap an Application of the Habitat shop.
func generated(cm *corev1.ConfigMap) {
	with(cm, annotated, generatedFrom("Habitat/shop"), data("spec.manifest", "[]"))
}

// shared makes a ConfigMap the Application of the peer file.
func shared(cm *corev1.ConfigMap) {
	with(cm, annotated, generatedFrom("Habitats"))
}

// peerFile has what the agent has made, and an entry in every field.
func peerFile(cm *corev1.ConfigMap) {
	with(cm,
		marked, annotate("krake.dev/owner", cm.Namespace+"/habitat-peers /ConfigMap/"+cm.Namespace+"/peer-watch-file"), annotate("note", "mine"),
		label("habitat", "true"), data("peer-watch-file", "10.0.0.1"), data("other", "x"), binary("more", "x"), addFinalizerOf("x"))
}

func address(of string) edit { return data("peer-watch-file", of) }

// fill adds n entries.
func fill(n int, with func(key string) edit) edit {
	return func(cm *corev1.ConfigMap) {
		for i := range n {
			with("entry-" + x(i%40) + strconv.Itoa(i))(cm)
		}
	}
}

func aData(key string) edit { return data(key, "x") }

// configMapWrite is a row of the table: a write of the controller to a ConfigMap.
type configMapWrite struct {
	what, name string
	// stored is the ConfigMap that the administrator created before; without it, the
	// write is a creation.
	stored []edit
	change []edit
	want   string
}

// configMapWrites returns the controller's writes to ConfigMaps.
func configMapWrites(p place) []configMapWrite {
	const shop, peers, file = "habitat-shop", "habitat-peers", "peer-watch-file"
	edits := func(edits ...edit) []edit { return edits }
	controlled := p.ownedBy("shop", true)
	aNote := func(key string) edit { return annotate("krake.dev/"+key, "x") }
	return []configMapWrite{
		{"create an Application", shop, nil, edits(generated, controlled), allowed},
		{"create that of the peer file", peers, nil, edits(shared, p.ownedBy("shop", false), p.ownedBy("clerk", false)), allowed},
		{"create one of another cluster", shop, nil, edits(generated, annotate("krake.dev/cluster", "x")), allowed},
		{"create a plain ConfigMap", "x", nil, nil, sayCreates},
		{"create one that is from another", shop, nil, edits(annotated, generatedFrom("Habitat/clerk")), sayCreates},
		{"create that of the peer file from one", peers, nil, edits(annotated, generatedFrom("Habitat/peers")), sayCreates},
		{"create one of another name", "shop", nil, edits(annotated, generatedFrom("Habitat/shop")), sayCreates},
		{"create one of a name that is made up", "", nil, edits(generated, func(cm *corev1.ConfigMap) { cm.GenerateName = "habitat-shop" }), sayCreates},
		{"create the peer file", file, nil, edits(peerFile), sayCreates},
		{"create one that is held", shop, nil, edits(generated, annotate("krake.dev/mode", "observe")), saySettings},

		{"change everything that it makes", shop, edits(generated, controlled), edits(data("spec.manifest", "{}"), data("spec.observer_schema", "x"), label("habitat", "true"), annotate("krake.dev/cluster", "x"), annotate("note", "x")), allowed},
		{"change that of the peer file", peers, edits(shared, p.ownedBy("shop", false)), edits(p.ownedBy("clerk", false)), allowed},
		{"change one that is held", shop, edits(generated, annotate("krake.dev/mode", "observe")), edits(data("spec.manifest", "{}")), allowed},
		{"say who holds one", shop, edits(generated), edits(annotate("krake.dev/held-by", "anna")), saySettings},
		{"change one of which the webhook removes who held it", shop, edits(generated, annotate("krake.dev/held-by", "anna")),
			edits(data("spec.manifest", "{}"), noAnnotation("krake.dev/held-by")), allowed},
		{"hold one no more", shop, edits(generated, annotate("krake.dev/mode", "observe")), edits(noAnnotation("krake.dev/mode")), saySettings},
		{"change one with more annotations than can be looked at", shop, edits(generated, fill(1000, aNote)), edits(data("spec.manifest", "{}")), saySettings},
		{"take away what it is from", shop, edits(generated), edits(notGenerated), sayRemains},
		{"say that it is from another", shop, edits(generated), edits(generatedFrom("Habitat/clerk")), sayRemains},
		{"say again what it is from, as the owner says", shop, edits(annotated, controlled), edits(generatedFrom("Habitat/shop")), allowed},
		{"say that for the peer file, as any owner says", peers, edits(annotated, p.ownedBy("clerk", false)), edits(generatedFrom("Habitats")), allowed},
		{"say that where the owner is not the controller", shop, edits(annotated, p.ownedBy("shop", false)), edits(generatedFrom("Habitat/shop")), sayTheirs},
		{"say that where the owner is another", shop, edits(annotated, p.ownedBy("clerk", true)), edits(generatedFrom("Habitat/shop")), sayTheirs},
		{"say that where the owner is of another kind", shop, edits(annotated, p.ownedBy("shop", true, "habitat.sh/v1beta1", "Ring")), edits(generatedFrom("Habitat/shop")), sayTheirs},
		{"take what is from another", shop, edits(annotated, generatedFrom("Habitat/clerk")), edits(generatedFrom("Habitat/shop")), sayTheirs},
		{"make an Application of somebody's ConfigMap", shop, edits(generatedFrom("Habitat/shop"), controlled), edits(annotated), sayTheirs},
		{"change somebody's Application", "x", edits(annotated, generatedFrom("Habitat/x")), edits(data("spec.manifest", "x")), sayTheirs},

		{"write the address", file, edits(peerFile), edits(address("10.0.0.2")), allowed},
		{"write that there is none", file, edits(peerFile), edits(address("")), allowed},
		{"write the first one", file, edits(peerFile, noData("peer-watch-file")), edits(address("10.0.0.2")), allowed},
		{"write the address beside more data than can be looked at", file, edits(peerFile, fill(1000, aData)), edits(address("10.0.0.2")), sayTheKey},
		{"write a name", file, edits(peerFile), edits(address("peer.example.org")), sayAddress},
		{"take the key away", file, edits(peerFile), edits(noData("peer-watch-file")), sayAddress},
		{"change another key", file, edits(peerFile), edits(data("other", "y")), sayTheKey},
		{"take another key away", file, edits(peerFile), edits(noData("other")), sayTheKey},
		{"change the binary data", file, edits(peerFile), edits(binary("more", "y")), sayTheKey},
		{"make it immutable", file, edits(peerFile), edits(immutable), sayTheKey},
		{"change a label", file, edits(peerFile), edits(label("habitat", "false")), sayTheKey},
		{"take the mark away", file, edits(peerFile), edits(noAnnotation("krake.dev/owner")), saySettings},
		{"change an annotation", file, edits(peerFile), edits(annotate("note", "theirs")), sayTheKey},
		{"give it an owner", file, edits(peerFile), edits(controlled), sayTheKey},
		{"take the finalizer away", file, edits(peerFile), edits(dropFinalizerOf("x")), sayTheKey},
		{"write the address in what has no marks", file, edits(data("peer-watch-file", "x")), edits(address("10.0.0.2")), sayTheirs},
		{"write the address in what another Application has", file, edits(peerFile, annotate("krake.dev/owner", p.namespace+"/x /ConfigMap/"+p.namespace+"/peer-watch-file")), edits(address("10.0.0.2")), sayTheirs},
		{"write the address in a copy from another namespace", file, edits(peerFile, annotate("krake.dev/owner", p.namespace+"/habitat-peers /ConfigMap/x/peer-watch-file")), edits(address("10.0.0.2")), sayTheirs},
		{"write the address in a copy", "copy", edits(peerFile), edits(address("10.0.0.2")), sayTheirs},
	}
}

// trial is a write, and the expected message of the policies. It changes nothing,
// whatever the policies decide.
type trial struct {
	what, want string
	try        try
	// prepare creates, as the administrator, the objects of the trial, and returns a
	// function that removes them; nil if they exist.
	prepare func(t *testing.T) (undo func())
}

type try = func(ctx context.Context, as clients) error

// prepared calls do while the objects of the trial exist.
func (tried trial) prepared(t *testing.T, do func()) {
	t.Helper()
	if tried.prepare != nil {
		defer tried.prepare(t)()
	}
	do()
}

var dry = []string{metav1.DryRunAll}

// trialsOfConfigMaps returns the trials with ConfigMaps.
func trialsOfConfigMaps(p place) []trial {
	var trials []trial
	for _, w := range configMapWrites(p) {
		of := with(plain(p.namespace, w.name), w.stored...)
		if w.stored == nil {
			trials = append(trials, trial{what: w.what, want: w.want, try: func(ctx context.Context, as clients) error {
				return creation(with(of.DeepCopy(), w.change...))(ctx, as)
			}})
			continue
		}
		var stored *corev1.ConfigMap
		trials = append(trials, trial{
			what: w.what, want: w.want,
			try: func(ctx context.Context, as clients) error {
				changed := with(stored.DeepCopy(), w.change...)
				return kit.ErrorOf(as.CoreV1().ConfigMaps(p.namespace).Update(ctx, changed, metav1.UpdateOptions{DryRun: dry}))
			},
			prepare: func(t *testing.T) func() {
				t.Helper()
				stored = create(t, administrator, of.DeepCopy())
				return func() { drop(t, stored) }
			},
		})
	}
	return append(trials, trialsOfDeletions(p)...)
}

// drop deletes a ConfigMap, with its finalizers.
func drop(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	server.Change(t, kit.ConfigMaps, cm.Namespace, cm.Name, `{"metadata":{"finalizers":null}}`)
	kit.Must(t, server.CoreV1().ConfigMaps(cm.Namespace).Delete(t.Context(), cm.Name, metav1.DeleteOptions{}))
}

// deletions returns two trials that delete an object: by its name, and in a collection.
func deletions(one, many, want string, resource schema.GroupVersionResource, namespace, name string) []trial {
	of := func(as clients) dynamic.ResourceInterface { return as.dynamic.Resource(resource).Namespace(namespace) }
	options := metav1.DeleteOptions{DryRun: dry}
	return []trial{
		{what: one, want: want, try: func(ctx context.Context, as clients) error { return of(as).Delete(ctx, name, options) }},
		{what: many, want: want, try: func(ctx context.Context, as clients) error {
			return of(as).DeleteCollection(ctx, options, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		}},
	}
}

// trialsOfDeletions: the controller deletes no ConfigMap of any owner.
func trialsOfDeletions(p place) []trial {
	var trials []trial
	for name, edits := range map[string][]edit{
		"habitat-clerk": {annotated, generatedFrom("Habitat/clerk")}, "somebodys": nil, "made": {marked}, "habitat-other": nil, "peer-watch-file": {peerFile},
	} {
		for _, deletion := range deletions("delete "+name, "delete all named "+name, sayDeletes, kit.ConfigMaps, p.namespace, name) {
			deletion.prepare = func(t *testing.T) func() {
				t.Helper()
				stored := create(t, administrator, plain(p.namespace, name), edits...)
				return func() { drop(t, stored) }
			}
			trials = append(trials, deletion)
		}
	}
	return trials
}

// workload is a StatefulSet or a Deployment without Pods.
const workload = `
apiVersion: apps/v1
kind: %s
metadata: {name: %s}
spec:
  replicas: 0
  selector: {matchLabels: {habitat-name: shop}}
  template:
    metadata: {labels: {habitat-name: shop}}
    spec: {containers: [{name: a, image: a}]}`

// trialsOfWorkloads returns the trials with the objects of an Application, its Pods,
// and definitions of kinds.
func trialsOfWorkloads(t *testing.T, p place) []trial {
	t.Helper()
	var all []trial
	for kind, resource := range map[string]schema.GroupVersionResource{"StatefulSet": kit.StatefulSets, "Deployment": kit.Deployments} {
		shop, other := habitatOf(fmt.Sprintf(workload, kind, "shop"), ""), habitatOf(fmt.Sprintf(workload, kind, "other"), "")
		kit.Must(t, kit.ErrorOf(server.Dynamic.Resource(resource).Namespace(p.namespace).Create(t.Context(), shop, metav1.CreateOptions{})))
		of := func(as clients) dynamic.ResourceInterface {
			return as.dynamic.Resource(resource).Namespace(p.namespace)
		}
		all = append(all, trial{what: "create a " + kind, want: sayWorkloads, try: func(ctx context.Context, as clients) error {
			return kit.ErrorOf(of(as).Create(ctx, other, metav1.CreateOptions{DryRun: dry}))
		}}, trial{what: "change a " + kind, want: sayWorkloads, try: func(ctx context.Context, as clients) error {
			patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
			return kit.ErrorOf(of(as).Patch(ctx, "shop", types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry}))
		}})
		all = append(all, deletions("delete a "+kind, "delete "+kind+"s", sayWorkloads, resource, p.namespace, "shop")...)
	}
	return slices.Concat(all, trialsOfPods(t, p), trialsOfKinds(t, p))
}

func trialsOfPods(t *testing.T, p place) []trial {
	t.Helper()
	var all []trial
	for name, c := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"ours":   {map[string]string{"habitat": "true", "habitat-name": "shop"}, allowed},
		"theirs": {map[string]string{"app": "x"}, sayPods},
		"bare":   {nil, sayPods},
		"false":  {map[string]string{"habitat": "false"}, sayPods},
	} {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels}, Spec: spec}
		kit.Must(t, kit.ErrorOf(server.CoreV1().Pods(p.namespace).Create(t.Context(), pod, metav1.CreateOptions{})))
		all = append(all, deletions("delete a Pod, "+name, "delete Pods, "+name, c.want, kit.Pods, p.namespace, name)...)
	}
	return all
}

// otherKind returns a foreign definition of a kind in a group.
func otherKind(group string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.` + group + `}
spec:
  group: ` + group + `
  names: {kind: Other, plural: others}
  scope: Namespaced
  versions: [{name: v1, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}]`
}

func trialsOfKinds(t *testing.T, p place) []trial {
	t.Helper()
	group := p.namespace + ".example.org" // no other run waits until this definition is gone: the finalizer of the API server may take minutes
	name := "others." + group
	kit.Must(t, kit.ErrorOf(server.Dynamic.Resource(kit.Definitions).Create(t.Context(), habitatOf(otherKind(group), ""), metav1.CreateOptions{})))
	t.Cleanup(func() {
		kit.Must(t, server.Dynamic.Resource(kit.Definitions).Delete(context.Background(), name, metav1.DeleteOptions{}))
	})
	touch := []byte(`{"metadata":{"annotations":{"note":"x"}}}`)
	change := func(name string) try {
		return func(ctx context.Context, as clients) error {
			return kit.ErrorOf(as.dynamic.Resource(kit.Definitions).Patch(ctx, name, types.MergePatchType, touch, metav1.PatchOptions{DryRun: dry}))
		}
	}
	deletion := func(name string) try {
		return func(ctx context.Context, as clients) error {
			return as.dynamic.Resource(kit.Definitions).Delete(ctx, name, metav1.DeleteOptions{DryRun: dry})
		}
	}
	creation := func(text string) try {
		return func(ctx context.Context, as clients) error {
			_, err := as.dynamic.Resource(kit.Definitions).Create(ctx, habitatOf(text, ""), metav1.CreateOptions{DryRun: dry})
			if apierrors.IsAlreadyExists(err) {
				return nil // the policies have allowed it
			}
			return err
		}
	}
	const ours = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: habitats.habitat.sh}
spec:
  group: habitat.sh
  names: {kind: Habitat, plural: habitats}
  scope: Namespaced
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`
	return []trial{
		{"define Habitats", allowed, creation(ours), nil},
		{"change their definition", allowed, change("habitats.habitat.sh"), nil},
		{"delete their definition", sayKinds, deletion("habitats.habitat.sh"), nil},
		{"define something else", sayKinds, creation(otherKind(group)), nil},
		{"change another definition", sayKinds, change(name), nil},
		{"delete another definition", sayKinds, deletion(name), nil},
	}
}

// Whatever its rights are, the controller writes only what it makes of Habitats. Any
// account with its name is confined, and no other.
func TestTheControllerOfHabitatsIsConfined(t *testing.T) {
	p := newPlace(t)
	trials := append(trialsOfConfigMaps(p), trialsOfWorkloads(t, p)...)
	byName := identity{name: "system:serviceaccount:krake-system:krake-habitat", groups: []string{"system:masters"}}
	free := []identity{
		{name: "anna", groups: administrator.groups},
		{name: "system:serviceaccount:krake-system:krake-webhook", groups: administrator.groups},
		{name: "system:serviceaccount:demo:krake-habitat", groups: administrator.groups},
		{name: "system:serviceaccount:krake-system:krake-habitat2", groups: administrator.groups},
	}
	for _, tried := range trials {
		tried.prepared(t, func() {
			for _, who := range []identity{controller, byName} {
				if got := verdict(tried.try(t.Context(), who.mustClient(t))); got != tried.want {
					t.Errorf("%s: %s: the policy says\n%q, want\n%q", who.name, tried.what, got, tried.want)
				}
			}
			for _, who := range free {
				if got := verdict(tried.try(t.Context(), who.mustClient(t))); got != allowed {
					t.Errorf("%s: %s: the policy says %q", who.name, tried.what, got)
				}
			}
		})
	}
}

// Expressions have a cost limit: the largest possible objects are far below it.
func TestCostOfHabitats(t *testing.T) {
	p := newPlace(t)
	note := func(key string) edit { return annotate("krake.dev/"+key, "x") }
	stored := create(t, administrator, plain(p.namespace, "habitat-shop"), generated, fill(998, aData), fill(997, note), data("x", x(800<<10)))
	mustUpdate(t, controller, stored, data("spec.manifest", "{}"))
	file := create(t, administrator, plain(p.namespace, "peer-watch-file"), peerFile, fill(998, aData), data("other", x(800<<10)))
	mustUpdate(t, controller, file, address("10.0.0.2"))
}

// The largest possible Habitat is far below the cost limit of its rules.
func TestCostOfTheLargestHabitat(t *testing.T) {
	variables := make([]any, 500)
	for i := range variables {
		variables[i] = map[string]any{"name": x(1024), "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": x(253), "key": x(253)}}}
	}
	binds := make([]any, 100)
	for i := range binds {
		binds[i] = map[string]any{"name": x(240) + strconv.Itoa(i), "service": x(253), "group": x(253)}
	}
	largest := habitatOf(v1beta2Habitat, `
metadata: {name: `+x(52)+`}
spec:
  v1beta2:
    image: `+x(1024)+`
    updateStrategy: OnDelete
    persistentStorage: {size: 1Gi, mountPath: /`+x(4095)+`, storageClassName: `+x(253)+`}
    service: {name: `+x(253)+`, topology: leader, group: `+x(253)+`, channel: `+x(253)+`, configSecretName: `+x(253)+`, filesSecretName: `+x(253)+`, ringSecretName: `+x(48)+`-20230101000000}`)
	spec := largest.Object["spec"].(map[string]any)["v1beta2"].(map[string]any)
	spec["env"] = variables
	spec["service"].(map[string]any)["bind"] = binds
	namespace := newNamespace(t)
	resource := server.Dynamic.Resource(habitats).Namespace(namespace)
	stored, err := resource.Create(t.Context(), largest, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	kit.Must(t, err)
	stored.SetLabels(map[string]string{"a": "b"})
	kit.Must(t, kit.ErrorOf(resource.Update(t.Context(), stored, metav1.UpdateOptions{})))
}
