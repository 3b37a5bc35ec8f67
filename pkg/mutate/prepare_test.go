package mutate_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// submitted returns the Song as a user sends it.
func submitted() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web",
			Labels:      map[string]string{"team": "blue"},
			Annotations: map[string]string{"krake.dev/application": "v1"},
			Finalizers:  []string{"example.org/mine"},
		},
		Data: map[string]string{
			"spec.manifest":        song().Manifest,
			"spec.observer_schema": song().ObserverSchema,
			"note":                 "the user's own",
		},
	}
}

// stored returns the Song after an agent has recorded its work.
func stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := submitted()
	prepareCreate(t, cm)
	app, err := application.Read(cm)
	check.Must(t, err)
	app.Learned, app.Finalized = key3(), true
	app.LastApplied = application.Publishing(desire(t, song(), key3()).Resources)
	app.Status = application.Status{ObservedSpec: app.Spec.Digest(), State: application.StateRunning}
	check.Must(t, app.Record(cm))
	cm.UID, cm.ResourceVersion = "u1", "7"
	return cm
}

// forge sets all fields that only webhook and agents may write.
func forge(cm *corev1.ConfigMap) {
	for _, key := range []string{
		"status", "status.learned", "status.last_observed_manifest", "status.last_applied_manifest",
		"status.mangled_observer_schema", "inventory.local", "inventory.edge",
	} {
		cm.Data[key] = "forged"
	}
	cm.BinaryData = map[string][]byte{"status.learned": []byte("forged"), "inventory.far": []byte("forged"), "picture": {1}}
	cm.Labels["krake.dev/state"], cm.Labels["krake.dev/cluster"] = "forged", "forged"
	cm.Labels["holder.krake.dev/edge"] = "true"
	cm.Finalizers = append(cm.Finalizers, "edge.krake.dev/resources")
}

func prepareCreate(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
}

func prepareUpdate(t *testing.T, cm, stored *corev1.ConfigMap) {
	t.Helper()
	before := stored.DeepCopy()
	check.Must(t, mutate.PrepareForUpdate(t.Context().Err, cm, stored, application.IsAdmitted(stored)).Refusals.ToAggregate())
	check.Equal(t, "the stored object", before, stored)
}

func TestCreateThrowsForgedStatusAway(t *testing.T) {
	want := submitted()
	prepareCreate(t, want)
	want.BinaryData = map[string][]byte{"picture": {1}}
	cm := submitted()
	forge(cm)
	prepareCreate(t, cm)
	check.Equal(t, "ConfigMap", want, cm)
}

// A plain ConfigMap may contain anything under our keys: it was never admitted.
func TestAnnotatingAConfigMapCreatesAnApplication(t *testing.T) {
	plain := submitted()
	plain.Annotations = nil
	forge(plain)
	want := submitted()
	prepareCreate(t, want)
	want.BinaryData = map[string][]byte{"picture": {1}}
	cm := submitted()
	forge(cm)
	prepareUpdate(t, cm, plain)
	check.Equal(t, "ConfigMap", want, cm)
}

func TestUpdateRestoresTheStoredStatus(t *testing.T) {
	was := stored(t)
	cm := was.DeepCopy()
	forge(cm)
	delete(cm.Labels, "holder.krake.dev/local")
	prepareUpdate(t, cm, was)
	want := was.DeepCopy()
	want.BinaryData = map[string][]byte{"picture": {1}}
	check.Equal(t, "ConfigMap", want, cm)
}

func TestUpdateRestoresCompressedDocuments(t *testing.T) {
	was := stored(t)
	delete(was.Data, "status.learned")
	was.BinaryData = map[string][]byte{"status.learned": {0x1f, 0x8b}}
	cm := submitted()
	cm.Data["status.learned"] = "forged"
	prepareUpdate(t, cm, was)
	check.Equal(t, "binary data", was.BinaryData, cm.BinaryData)
	_, isLeft := cm.Data["status.learned"]
	check.Equal(t, "the forged document is left beside it", false, isLeft)
}

// kubectl replace sends the user's file: no status, and none of our finalizers.
func TestReplaceKeepsWhatIsOurs(t *testing.T) {
	was := stored(t)
	was.Finalizers = []string{"local.krake.dev/resources", "example.org/mine", "edge.krake.dev/resources"}
	cm := submitted()
	cm.UID, cm.ResourceVersion = was.UID, was.ResourceVersion
	prepareUpdate(t, cm, was)
	check.Equal(t, "ConfigMap", was, cm)
}

// A user removes and adds finalizers of others, in any order.
func TestUpdateChangesTheFinalizersOfOthers(t *testing.T) {
	was := stored(t)
	was.Finalizers = []string{"example.org/gone", "local.krake.dev/resources", "example.org/mine"}
	cm := was.DeepCopy()
	cm.Finalizers = []string{"example.org/b", "example.org/mine", "example.org/a"}
	prepareUpdate(t, cm, was)
	check.Equal(t, "finalizers", []string{"example.org/b", "example.org/a", "local.krake.dev/resources", "example.org/mine"}, cm.Finalizers)
}

// An upgrade and its rollback write nothing: the documents stay those of the version that
// computed them, until the spec changes.
func TestUpdateOfAnUnchangedSpecRewritesNothing(t *testing.T) {
	was := stored(t)
	was.Data["status.mangled_observer_schema"] = "as another version wrote it"
	was.Data["status.last_applied_manifest"] = "as another version wrote it"
	cm := was.DeepCopy()
	cm.Labels["team"] = "red"
	cm.Annotations["note"] = "x"
	cm.Data["note"] = "changed"
	want := cm.DeepCopy()
	prepareUpdate(t, cm, was)
	check.Equal(t, "ConfigMap", want, cm)
}

// The ConfigMap was created before the webhook existed, with any content.
func TestUpdateAdmitsWhatWasNeverAdmitted(t *testing.T) {
	was := submitted()
	cm := was.DeepCopy()
	prepareUpdate(t, cm, was)
	want := submitted()
	prepareCreate(t, want)
	check.Equal(t, "ConfigMap", want, cm)
}

func TestUpdateOfTheSpecComputesAgain(t *testing.T) {
	was := stored(t)
	cm := was.DeepCopy()
	cm.Data["spec.manifest"] = strings.Replace(cm.Data["spec.manifest"], "kilestbo", "changed", 1)
	want := cm.DeepCopy()
	want.Data["status.last_applied_manifest"] = strings.Replace(want.Data["status.last_applied_manifest"], "kilestbo", "changed", 1)
	if !strings.Contains(want.Data["status.last_applied_manifest"], `"key3":"kilestlai"`) {
		t.Fatal("the stored Song has learned nothing")
	}
	prepareUpdate(t, cm, was)
	check.Equal(t, "ConfigMap", want, cm)
}

func TestUpdateOfTheSchemaComputesAgain(t *testing.T) {
	was := stored(t)
	cm := was.DeepCopy()
	delete(cm.Data, "spec.observer_schema")
	prepareUpdate(t, cm, was)
	app, err := application.Read(cm)
	check.Must(t, err)
	check.Equal(t, "desired state", decode(t, song().Manifest), app.LastApplied.Objects()) // key3 is no longer observed
	check.Equal(t, "what was learned is the agent's", key3(), app.Learned)
}

func TestMoveToAnotherCluster(t *testing.T) {
	was := stored(t)
	cm := was.DeepCopy()
	cm.Annotations["krake.dev/cluster"] = "edge"
	prepareUpdate(t, cm, was)
	check.Equal(t, "labels", map[string]string{
		"team": "blue", "krake.dev/state": "RUNNING", "krake.dev/cluster": "edge",
		"holder.krake.dev/edge": "true", "holder.krake.dev/local": "true", // it still has the objects
	}, cm.Labels)
	check.Equal(t, "finalizers", was.Finalizers, cm.Finalizers)
}

// An Application that is being deleted is not computed any more. Our fields stay until its
// agents remove them, or until the user abandons their objects.
func TestUpdateOfADeletingApplication(t *testing.T) {
	was := stored(t)
	was.DeletionTimestamp = new(metav1.Now())
	cm := was.DeepCopy()
	forge(cm)
	cm.Finalizers, cm.BinaryData = nil, nil
	cm.Data["spec.manifest"] = "a: &x 1"
	want := was.DeepCopy()
	want.Data["spec.manifest"] = "a: &x 1"
	want.Finalizers = []string{"local.krake.dev/resources"}
	prepareUpdate(t, cm, was)
	check.Equal(t, "ConfigMap", want, cm)

	cm.Annotations["krake.dev/force-delete"] = "false"
	prepareUpdate(t, cm, was)
	check.Equal(t, "finalizers", []string{"local.krake.dev/resources"}, cm.Finalizers)
	cm.Annotations["krake.dev/force-delete"] = "true"
	prepareUpdate(t, cm, was)
	check.Equal(t, "finalizers of what is given up on", []string{}, cm.Finalizers)
}

// A request cannot bypass the webhook by a forged deletion timestamp.
func TestUpdateByARequestThatSaysDeleted(t *testing.T) {
	was := stored(t)
	cm := was.DeepCopy()
	cm.DeletionTimestamp = new(metav1.Now())
	cm.Data["spec.manifest"], cm.Data["status.last_applied_manifest"] = "a: &x 1", "forged"
	cm.Annotations["krake.dev/force-delete"] = "true"
	check.Equal(t, "refusals", 1, len(mutate.PrepareForUpdate(t.Context().Err, cm, was, true).Refusals))
	cm.Data["spec.manifest"] = was.Data["spec.manifest"]
	prepareUpdate(t, cm, was)
	check.Equal(t, "data", was.Data, cm.Data)
	check.Equal(t, "finalizers", was.Finalizers, cm.Finalizers)
}

// The garbage collector has no rights to the Application's objects, and needs none for an
// update of links.
func TestUpdateOfLinksAdmitsNothing(t *testing.T) {
	was := submitted()
	was.OwnerReferences = []metav1.OwnerReference{{Name: "a"}, {Name: "b"}}
	cm := was.DeepCopy()
	cm.OwnerReferences = cm.OwnerReferences[:1]
	want := cm.DeepCopy()
	check.Equal(t, "rights are asked for", false, mutate.PrepareForUpdate(t.Context().Err, cm, was, true).Checked)
	check.Equal(t, "ConfigMap", want, cm)
}

// Rights are required exactly if the Application is to be carried out. Every editor may remove settings
// that hold the agent back: the resulting actions were admitted before. Without krake.dev/adopt or
// krake.dev/deletion-policy the agent may delete objects.
func TestUpdateAsksForRights(t *testing.T) {
	former := []string{"krake.dev/mode", "krake.dev/hold-until", "krake.dev/hold", "krake.dev/adopt", "krake.dev/deletion-policy"}
	without := func(annotation string) func(cm *corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { delete(cm.Annotations, annotation) }
	}
	tests := []struct {
		why    string
		change func(cm *corev1.ConfigMap)
		want   bool
	}{
		{"nothing", func(*corev1.ConfigMap) {}, false},
		{"to repair again", without("krake.dev/mode"), false},
		{"to hold no more", without("krake.dev/hold-until"), false},
		{"to deny holds no more", without("krake.dev/hold"), false},
		{"to adopt no more", without("krake.dev/adopt"), true},
		{"to leave no objects behind", without("krake.dev/deletion-policy"), true},
		{"labels, annotations and finalizers of others", func(cm *corev1.ConfigMap) {
			cm.Labels["team"], cm.Annotations["note"], cm.Finalizers = "red", "x", append(cm.Finalizers, "example.org/x")
		}, false},
		{"owners", func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} }, false},
		{"other data", func(cm *corev1.ConfigMap) { cm.Data["note"] = "x" }, false},
		{"forged status", forge, false},
		{"to give up on it, once it is deleted", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/force-delete"] = "true" }, false},
		{"the manifest, though it means the same", func(cm *corev1.ConfigMap) { cm.Data["spec.manifest"] += "# comment\n" }, true},
		{"the observer schema", func(cm *corev1.ConfigMap) { delete(cm.Data, "spec.observer_schema") }, true},
		{"the cluster", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/cluster"] = "edge" }, true},
		{"the service account", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/service-account"] = "deployer" }, true},
		{"to adopt what others made", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/adopt"] = "true" }, true},
		{"to leave the objects behind", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/deletion-policy"] = "orphan" }, true},
		{"to come after another one", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/after"] = "definitions" }, true},
		{"to stop repairs", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/mode"] = "suspend" }, false},
		{"to hold", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/hold-until"] = "2026-01-02T15:04:05Z" }, false},
		{"to deny holds", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/hold"] = "deny" }, false},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			was := stored(t)
			for _, annotation := range former {
				was.Annotations[annotation] = "whatever it was"
			}
			cm := was.DeepCopy()
			test.change(cm)
			prepared := mutate.PrepareForUpdate(t.Context().Err, cm, was, true)
			check.Equal(t, "refusals", []any{}, messages(prepared.Refusals))
			check.Equal(t, "asked", test.want, prepared.Checked)
			if test.want {
				check.Equal(t, "former", []manifest.ID{
					{APIVersion: "v1", Kind: "Song", Name: "top50"}, {APIVersion: "v1", Kind: "Artist", Name: "gainsbourg"},
				}, prepared.Former)
			}
		})
	}
}

// Every wish wakes the agent: SameFor reports a difference for each.
func TestEveryWishWakesTheAgent(t *testing.T) {
	for _, annotation := range application.UserAnnotations() {
		was := stored(t)
		cm := was.DeepCopy()
		cm.Annotations[annotation] = "another"
		check.Equal(t, annotation+" is nothing to act on", false, application.SameFor(was, cm, application.LocalCluster))
	}
}

func TestSummary(t *testing.T) {
	refusals := field.ErrorList{
		field.Forbidden(field.NewPath("immutable"), "a"),
		field.Required(field.NewPath("data"), "b"),
	}
	check.Equal(t, "summary", "immutable: Forbidden: a; data: Required value: b", mutate.Summary(refusals))
}

// A user who sets status gets a warning that it has no effect. There is no warning for a
// request that repeats the stored status, nor for a second call by the API server.
func TestStatusThatIsIgnored(t *testing.T) {
	cm := submitted()
	forge(cm)
	check.Equal(t, "warnings of a creation", "binaryData.inventory.far, binaryData.status.learned, data.inventory.edge, 10 more: "+
		"only webhook and agents write it, so the request does not change it", mutate.PrepareForCreate(t.Context().Err, cm).Warnings[0])
	check.Equal(t, "warnings of the same, asked again", 1, len(mutate.PrepareForCreate(t.Context().Err, cm).Warnings)) // the warning of the schema

	was := stored(t)
	check.Equal(t, "warnings of what is stored", 0, len(mutate.PrepareForUpdate(t.Context().Err, was.DeepCopy(), was, true).Warnings))
	check.Equal(t, "warnings of a request without status", 0, len(mutate.PrepareForUpdate(t.Context().Err, submitted(), was, true).Warnings))
	labelled := was.DeepCopy()
	labelled.Labels["krake.dev/state"] = "FAILED"
	check.Equal(t, "warnings of a label", []string{
		"metadata.labels[krake.dev/state]: only webhook and agents write it, so the request does not change it",
	}, mutate.PrepareForUpdate(t.Context().Err, labelled, was, true).Warnings)
}

// The computation for a request that has ended ends, and leaves no documents.
func TestTheRequestHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cm := submitted()
	refusals := mutate.PrepareForCreate(ctx.Err, cm).Refusals
	check.Equal(t, "refusals", []any{"data: Internal error: context canceled"}, messages(refusals))
	check.Equal(t, "documents", false, application.IsAdmitted(cm))
}

// The whole ConfigMap, and its annotations, may have a size just below their limits. What the agent
// adds later counts, too. (testdata/bad/sizes.yaml has the limits of the spec.)
func TestSizesOfTheConfigMap(t *testing.T) {
	const whole, annotations = 1 << 20, 256 << 10
	note := func(bytes int) func(cm *corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Data["note"] = strings.Repeat("x", bytes) }
	}
	annotation := func(bytes int) func(cm *corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Annotations["note"] = strings.Repeat("x", bytes) }
	}
	const tooLarge = "data: Invalid value: the ConfigMap would have 10"
	tests := []struct {
		why    string
		change func(cm *corev1.ConfigMap)
		want   string
	}{
		{"other data up to 0.99 of the limit", note(whole * 99 / 100), ""},
		{"other data that leaves no room for what the agent adds", note(whole - 300), tooLarge},
		{"binary data of 1.01 of the limit", func(cm *corev1.ConfigMap) {
			cm.BinaryData = map[string][]byte{"note": make([]byte, whole*101/100)}
		}, tooLarge},
		{"annotations of 0.99 of the limit", annotation(annotations * 99 / 100), ""},
		{"annotations of 1.01 of the limit", annotation(annotations * 101 / 100), "metadata.annotations: Invalid value: they have 264792 bytes; the maximum is 262144: " +
			"kubectl apply copies the whole ConfigMap into one, kubectl apply --server-side does not"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": storedManifest}
			test.change(cm)
			refusals := mutate.PrepareForCreate(t.Context().Err, cm).Refusals
			if test.want == "" {
				check.Empty(t, "refusals", refusals)
			} else if len(refusals) != 1 || !strings.HasPrefix(refusals[0].Error(), test.want) {
				t.Errorf("got %v, want %s", refusals, test.want)
			}
		})
	}
}
