package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// dangerous returns objects that would let any user who may write ConfigMaps control
// the cluster, or a namespace, if the agent created them. NAME is replaced.
func dangerous() []string {
	const rbac = "rbac.authorization.k8s.io/v1"
	const registration = "admissionregistration.k8s.io/v1"
	return []string{
		"{apiVersion: " + rbac + ", kind: ClusterRoleBinding, metadata: {name: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: low}]}",
		"{apiVersion: " + rbac + ", kind: ClusterRole, metadata: {name: NAME}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}",
		"{apiVersion: " + rbac + ", kind: RoleBinding, metadata: {name: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: low}]}",
		"{apiVersion: " + rbac + ", kind: Role, metadata: {name: NAME}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}",
		"{apiVersion: v1, kind: Node, metadata: {name: NAME}}",
		"{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAME}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /}}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: NAME}, stringData: {a: b}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: NAME, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token, data: {a: Yg==}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: NAME}, spec: {hard: {pods: 0}}}",
		"{apiVersion: v1, kind: LimitRange, metadata: {name: NAME}, spec: {limits: []}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAME.example.com}}",
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME}, spec: {group: NAME, version: v1}}",
		"{apiVersion: " + registration + ", kind: MutatingWebhookConfiguration, metadata: {name: NAME}}",
		"{apiVersion: " + registration + ", kind: ValidatingWebhookConfiguration, metadata: {name: NAME}}",
		"{apiVersion: " + registration + ", kind: ValidatingAdmissionPolicy, metadata: {name: NAME}}",
		"{apiVersion: " + registration + ", kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAME}}",
		"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: NAME}, spec: {signerName: kubernetes.io/kube-apiserver-client, request: aGVsbG8=, usages: [client auth]}}",
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAME}, value: 1000000000}",
		"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAME}, provisioner: example.com/a}",
		"{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: NAME}, handler: a}",
		"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: NAME}, spec: {type: Exempt}}",
	}
}

// refusalBy returns the reason why the agent does not create an object. It has no
// rights on the kinds that it cannot refuse itself.
func refusalBy(object string) (reason string) {
	for _, kind := range []string{"ResourceQuota", "LimitRange"} {
		if strings.Contains(object, "kind: "+kind+", metadata") {
			return "Forbidden"
		}
	}
	return "Refused"
}

// mayWrite returns the resources that the shipped agent may write.
func mayWrite() []string {
	return []string{
		"configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "serviceaccounts", "services",
		"daemonsets", "deployments", "replicasets", "statefulsets",
		"cronjobs", "jobs", "horizontalpodautoscalers", "ingresses", "networkpolicies", "poddisruptionbudgets",
		"resourceclaims", "resourceclaimtemplates",
	}
}

// onlyAllowedWrites fails if the agent has tried to write, since the mark, anything
// except its Lease, Events, and allowed objects in namespaces of these tests. Earlier
// tests leave namespaces that are being deleted.
func onlyAllowedWrites(t *testing.T, since kit.Mark) {
	t.Helper()
	writes := 0
	for _, r := range since.Requests(t, kit.By(string(agent)), kit.Request.IsWrite) {
		if r.Object.Resource == "leases" && r.Object.Namespace == application.AgentsNamespace {
			continue
		}
		writes++
		known := r.Object.Resource == "events" || slices.Contains(mayWrite(), r.Object.Resource)
		if !known || !strings.HasPrefix(r.Object.Namespace, "admission-") {
			t.Errorf("the agent wrote: %s", r)
		}
	}
	t.Logf("%d writes of the agent were looked at", writes)
}

// danger returns an Application with one of the dangerous objects, named after the
// user.
func danger(namespace string, i int, u user) *corev1.ConfigMap {
	name := fmt.Sprintf("danger-%d-%s", i, u)
	return withManifest(namespace, name, strings.ReplaceAll(dangerous()[i], "NAME", name))
}

// A user who may write ConfigMaps, or has edit, gets no object
// that would grant more rights: the webhook refuses. If the webhook is bypassed, and its key known, the agent does.
func TestObjectsThatGrantRightsAreRefused(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	since := hub.Mark(t)
	if len(dangerous()) < 20 {
		t.Fatalf("%d kinds", len(dangerous()))
	}
	t.Run("the webhook refuses", func(t *testing.T) { dangerByWebhook(t, namespace) })
	t.Run("so does the agent, when the webhook's configuration is gone", func(t *testing.T) { dangerByAgent(t, namespace) })
	mustHeal(t, namespace, "web")
	for _, r := range since.Requests(t, kit.By(string(agent)), kit.Request.IsWrite) {
		if strings.HasPrefix(r.Object.Name, "danger-") && r.Object.Resource != "configmaps" {
			t.Errorf("the agent tried: %s", r)
		}
	}
	onlyAllowedWrites(t, since)
	for _, resource := range []schema.GroupVersionResource{
		kit.ClusterRoles, rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), kit.Namespaces, corev1.SchemeGroupVersion.WithResource("nodes"),
		kit.Definitions, {Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	} {
		list, err := hub.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil || strings.Contains(string(kit.JSON(t, list)), `"danger-`) {
			t.Errorf("%s: %v", resource.Resource, err)
		}
	}
}

func dangerByWebhook(t *testing.T, namespace string) {
	t.Helper()
	for i := range dangerous() {
		for _, u := range []user{low, editor, root} {
			if u == root && refusalBy(dangerous()[i]) == "Forbidden" {
				continue // a user with all rights may request these
			}
			app := danger(namespace, i, u)
			v := verdictOf(create(t, u, app))
			if v != noRights && v != confined && v != invalidText || get(t, namespace, app.Name) != nil {
				t.Errorf("%s: %s: %s", app.Name, v, dangerous()[i])
			}
		}
	}
}

func dangerByAgent(t *testing.T, namespace string) {
	t.Helper()
	withoutConfiguration(t)
	for i := range dangerous() {
		app := danger(namespace, i, low)
		app.Labels = map[string]string{application.HolderLabel("local"): "true"} // as if it had been admitted
		hub.Sign(t, app)
		kit.Must(t, create(t, low, app))
	}
	for i, object := range dangerous() {
		name := danger(namespace, i, low).Name
		eventuallyState(t, application.StateFailed, namespace, name)
		if status := get(t, namespace, name).Data[application.StatusKey]; !strings.Contains(status, `"reason":"`+refusalBy(object)+`"`) {
			t.Errorf("%s: %s", object, status)
		}
	}
	restore(t)
}

// escapes returns manifests that name another namespace, openly or hidden. OTHER stands
// for it.
func escapes() map[string]string {
	const cm = "{apiVersion: v1, kind: ConfigMap, metadata: {name: escape, namespace: OTHER}}"
	return map[string]string{
		"openly":                           cm,
		"kube-system":                      strings.ReplaceAll(cm, "OTHER", "kube-system"),
		"as the second document":           "{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}\n---\n" + cm,
		"with a capital letter":            strings.ReplaceAll(cm, "namespace: OTHER", "namespace: Other"),
		"with a slash in it":               strings.ReplaceAll(cm, "namespace: OTHER", "namespace: here/../OTHER"),
		"with a slash in the name":         "{apiVersion: v1, kind: ConfigMap, metadata: {name: ../../OTHER/configmaps/escape}}",
		"with a percent sign in the name":  "{apiVersion: v1, kind: ConfigMap, metadata: {name: ..%2f..%2fOTHER}}",
		"given twice":                      "{apiVersion: v1, kind: ConfigMap, metadata: {name: escape, namespace: HERE, namespace: OTHER}}",
		"by an anchor":                     "{apiVersion: v1, kind: ConfigMap, metadata: {name: &a escape, namespace: *a}}",
		"by a merge key":                   "{apiVersion: v1, kind: ConfigMap, metadata: {<<: {namespace: OTHER}, name: escape}}",
		"in a List":                        "{apiVersion: v1, kind: List, items: [" + cm + "]}",
		"in a ConfigMapList":               "{apiVersion: v1, kind: ConfigMapList, items: [" + cm + "]}",
		"in a List in a List":              "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [" + cm + "]}]}",
		"in an array":                      "[" + cm + "]",
		"of a kind that is not namespaced": "{apiVersion: v1, kind: Namespace, metadata: {name: escape, namespace: HERE}}",
		"by a version that nobody serves":  "{apiVersion: v2, kind: Service, metadata: {name: escape, namespace: OTHER}}",
		"by the plural":                    "{apiVersion: v1, kind: configmaps, metadata: {name: escape, namespace: OTHER}}",
	}
}

// No Application reaches another namespace, whatever its manifest looks like.
func TestNoApplicationReachesAnotherNamespace(t *testing.T) {
	namespace, victim := newNamespace(t), newNamespace(t)
	mustRun(t, namespace, "web")
	since := hub.Mark(t)
	for name, manifest := range escapes() {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("OTHER", victim, "HERE", namespace).Replace(manifest)
			for _, u := range []user{low, editor, root} {
				err := create(t, u, withManifest(namespace, "escape", text))
				if v := verdictOf(err); v != confined && v != invalidText && v != noRights {
					t.Errorf("%s: %s", u, v)
				}
			}
		})
	}
	mustHeal(t, namespace, "web")
	onlyAllowedWrites(t, since)
	for _, r := range since.Requests(t, kit.By(string(agent)), kit.Request.IsWrite) {
		if r.Object.Namespace == victim || strings.Contains(r.URI, victim) {
			t.Errorf("the agent wrote to the other namespace: %s", r)
		}
	}
}

// A user who may write only ConfigMaps gains nothing from the Application of a user with more
// rights. TestAuthorityMatrix has the Applications of users themselves.
func TestApplicationDoesNothingThatItsUserMayNot(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	before := get(t, namespace, "web")
	deploy, otherPort := kinds()[1].object("", "web", "1"), manifestPatch(strings.ReplaceAll(manifest, "port: 80", "port: 81"))
	for name, change := range map[string]string{
		"the spec":                    otherPort,
		"the spec, white space":       manifestPatch(manifest + "\n"),
		"the spec, an object more":    manifestPatch(manifest, deploy),
		"the spec, the object out":    manifestPatch("[]"),
		"the schema":                  `{"data": {"spec.observer_schema": "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: null}}"}}`,
		"the cluster":                 `{"metadata": {"annotations": {"krake.dev/cluster": "other"}}}`,
		"the service account":         `{"metadata": {"annotations": {"krake.dev/service-account": "builder"}}}`,
		"the spec, as another's copy": manifestPatch(kinds()[0].object("", "mine", "1")),
	} {
		judge(t, "low changes "+name, noRights, patch(t, low, namespace, "web", change))
	}
	if err := patch(t, low, namespace, "web", `{"metadata": {"labels": {"team": "a"}, "annotations": {"example.com/note": "x"}}, "data": {"notes": "x"}}`); err != nil {
		t.Errorf("low changes what is no business of the Application: %v", err)
	}
	after := get(t, namespace, "web")
	for _, key := range []string{application.ManifestKey, application.LastAppliedKey, application.MangledSchemaKey} {
		if before.Data[key] != after.Data[key] {
			t.Errorf("%s was changed", key)
		}
	}
	judge(t, "edit changes the spec", admitted, patch(t, editor, namespace, "web", otherPort))
}

// forgedData are false entries that a user could try.
func forgedData() map[string]string {
	const victim = `[{"apiVersion":"v1","kind":"Service","name":"victim"}]`
	return map[string]string{
		application.StatusKey:             `{"state":"RUNNING"}`,
		application.LearnedKey:            `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"NodePort"}}]`,
		application.LastAppliedKey:        `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}]`,
		application.LastObservedKey:       victim,
		application.MangledSchemaKey:      "[]",
		application.InventoryKey("local"): victim,
		application.InventoryKey("other"): victim,
	}
}

// A forged status has the same result as the request without it.
func TestForgedStatusChangesNothing(t *testing.T) {
	honest := newNamespace(t)
	mustRun(t, honest, "web")
	want := settled(t, honest)
	forged := newApplication("", "web")
	forged.Labels = map[string]string{application.StateLabel: "RUNNING", application.HolderLabel("other"): "true", application.ClusterLabel: "other"}
	forged.Finalizers = []string{application.Finalizer("other"), application.Finalizer("local")}
	maps.Copy(forged.Data, forgedData())
	in := func(namespace string) *corev1.ConfigMap {
		app := forged.DeepCopy()
		app.Namespace = namespace
		return app
	}
	plain := func(namespace string) *corev1.ConfigMap {
		app := in(namespace)
		delete(app.Annotations, application.FormatAnnotation)
		return app
	}
	data := string(kit.JSON(t, map[string]any{"data": forgedData(), "metadata": map[string]any{"labels": forged.Labels}}))
	// byPatch patches an Application that runs.
	byPatch := func(u user, how types.PatchType, patch func(namespace string) string) func(*testing.T, string) error {
		return func(t *testing.T, namespace string) error {
			t.Helper()
			mustRun(t, namespace, "web")
			return try(t, u, how, namespace, "web", patch(namespace))
		}
	}
	always := func(patch string) func(string) string { return func(string) string { return patch } }
	for name, forge := range map[string]func(t *testing.T, namespace string) error{
		"created": func(t *testing.T, namespace string) error { t.Helper(); return create(t, editor, in(namespace)) },
		"a plain ConfigMap that is annotated": func(t *testing.T, namespace string) error {
			t.Helper()
			if err := create(t, low, plain(namespace)); err != nil {
				return err
			}
			return patch(t, editor, namespace, "web", `{"metadata": {"annotations": {"krake.dev/application": "v1"}}}`)
		},
		"replaced": func(t *testing.T, namespace string) error {
			t.Helper()
			mustRun(t, namespace, "web")
			return update(t, editor, in(namespace))
		},
		"by a merge patch": byPatch(low, types.MergePatchType, always(data)),
		"by a JSON patch": byPatch(low, types.JSONPatchType, always(`[
			{"op": "replace", "path": "/data/status.last_applied_manifest", "value": "[]"},
			{"op": "remove", "path": "/data/inventory.local"}, {"op": "remove", "path": "/data/status"},
			{"op": "add", "path": "/data/status.learned", "value": "[{}]"},
			{"op": "remove", "path": "/metadata/labels"}, {"op": "remove", "path": "/metadata/finalizers"}]`)),
		"by server-side apply": byPatch(editor, types.ApplyPatchType, func(namespace string) string { return kit.YAML(t, in(namespace)) }),
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			victim := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "victim"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
			kit.Must(t, kit.ErrorOf(hub.CoreV1().Services(namespace).Create(t.Context(), victim, metav1.CreateOptions{})))
			kit.Must(t, forge(t, namespace))
			eventuallyState(t, application.StateRunning, namespace, "web")
			mustHeal(t, namespace, "web")
			if diff := cmp.Diff(want, settled(t, namespace)); diff != "" {
				t.Errorf("with and without forging (-without +with):\n%s", diff)
			}
			if service(t, namespace, "victim") == nil {
				t.Error("the Service of somebody else is gone")
			}
		})
	}
}

// settled returns the Application web once its agent has no more work, without the
// fields that differ between Applications.
func settled(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	mustHeal(t, namespace, "web")
	var cm *corev1.ConfigMap
	kit.EventuallyTrue(t, "nothing was observed", func() bool {
		cm = get(t, namespace, "web")
		return cm.Data[application.LastObservedKey] != ""
	})
	data := map[string]string{}
	for key, value := range cm.Data {
		data[key] = strings.ReplaceAll(value, namespace, "NAMESPACE")
	}
	var status application.Status
	kit.Must(t, json.Unmarshal([]byte(data[application.StatusKey]), &status))
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	// The API server chooses the addresses, and the history may have the drift of
	// mustHeal.
	for name := range status.Services {
		status.Services[name] = "ADDRESS"
	}
	status.Drifts = nil
	data[application.StatusKey] = string(kit.JSON(t, status))
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Labels: cm.Labels, Finalizers: cm.Finalizers},
		Data:       data, BinaryData: cm.BinaryData,
	}
}

// An Application stays one until it is deleted. Neither the
// removal of the annotation nor another format orphans an object.
func TestStrippedAnnotationOrphansNothing(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	before := get(t, namespace, "web")
	plain := before.DeepCopy()
	plain.Annotations, plain.ResourceVersion = nil, ""
	by := func(how types.PatchType, patch string) func(u user) error {
		return func(u user) error { return try(t, u, how, namespace, "web", patch) }
	}
	for name, strip := range map[string]func(u user) error{
		"a merge patch":                    by(types.MergePatchType, `{"metadata": {"annotations": {"krake.dev/application": null}}}`),
		"a merge patch of all annotations": by(types.MergePatchType, `{"metadata": {"annotations": null}}`),
		"a strategic merge patch":          by(types.StrategicMergePatchType, `{"metadata": {"annotations": {"$patch": "replace"}}}`),
		"a JSON patch":                     by(types.JSONPatchType, `[{"op": "remove", "path": "/metadata/annotations"}]`),
		"a JSON patch that moves it": by(types.JSONPatchType,
			`[{"op": "move", "from": "/metadata/annotations/krake.dev~1application", "path": "/metadata/annotations/example.com~1application"}]`),
		"an update": func(u user) error { return update(t, u, plain) },
		"an update with spec and status gone": func(u user) error {
			return update(t, u, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}})
		},
		"another format": by(types.MergePatchType, `{"metadata": {"annotations": {"krake.dev/application": "v2"}}}`),
		"no format":      by(types.MergePatchType, `{"metadata": {"annotations": {"krake.dev/application": ""}}}`),
	} {
		for _, u := range []user{low, editor, root} {
			want := invalidText
			if u == low && strings.HasSuffix(name, " format") {
				want = noRights // it stays an Application
			}
			judge(t, fmt.Sprintf("%s, by %s", name, u), want, strip(u))
		}
	}
	// A user who applied the annotation removes it by applying without it.
	mine := newApplication(namespace, "applied")
	judge(t, "server-side apply, annotated", admitted, try(t, editor, types.ApplyPatchType, namespace, "applied", kit.YAML(t, mine)))
	mine.Annotations = nil
	judge(t, "server-side apply, not annotated", invalidText, try(t, editor, types.ApplyPatchType, namespace, "applied", kit.YAML(t, mine)))
	if diff := cmp.Diff(before, get(t, namespace, "web")); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
	mustHeal(t, namespace, "web")
}

// A dry run passes all of admission, and leaves nothing
// behind: neither in the store nor through the agent.
func TestDryRunLeavesNothingBehind(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	before, since := get(t, namespace, "web"), hub.Mark(t)
	changed := newApplication(namespace, "web")
	changed.Data[application.ManifestKey] = strings.ReplaceAll(manifest, "port: 80", "port: 81")
	configMaps := editor.client(t).CoreV1().ConfigMaps(namespace)
	created, err := configMaps.Create(t.Context(), newApplication(namespace, "dry"), dryRun)
	if err != nil || created.Data[application.LastAppliedKey] == "" || created.Labels[application.HolderLabel("local")] == "" {
		t.Errorf("%v: %v", err, created)
	}
	kit.Must(t, kit.Send(t, editor.client(t), "PATCH /api/v1/namespaces/"+namespace+"/configmaps/web?fieldManager=edit&force=true&dryRun=All", string(kit.JSON(t, changed)))())
	kit.Must(t, kit.ErrorOf(configMaps.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: dryRun.DryRun})))
	kit.Must(t, configMaps.Delete(t.Context(), "web", metav1.DeleteOptions{DryRun: dryRun.DryRun}))
	for _, arguments := range [][]string{{"apply", "--dry-run=server", "-f", "-"}, {"diff", "-f", "-"}} {
		text, err := editor.kubectl(kit.YAML(t, changed), arguments...)
		if differs := arguments[0] == "diff"; differs != (err != nil) {
			t.Errorf("%v: %v\n%s", arguments, err, text)
		}
	}
	if diff := cmp.Diff(before, get(t, namespace, "web")); diff != "" {
		t.Errorf("a dry run has changed the Application (-before +after):\n%s", diff)
	}
	if get(t, namespace, "dry") != nil {
		t.Error("a dry run has created an Application")
	}
	for _, u := range []user{agent, "system:serviceaccount:krake-system:krake-webhook"} {
		for _, r := range since.Requests(t, kit.By(string(u)), kit.In(namespace)) {
			if !strings.Contains(r.URI, "dryRun=All") { // the webhook tries the new objects
				t.Errorf("%s: %s", u, r)
			}
		}
	}
	mustHeal(t, namespace, "web")
}
