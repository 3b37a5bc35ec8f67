package strict

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The upgrade of a public installation is one kubectl apply of its Application. It ends where kubectl apply of the new
// manifest would end after the former one, and without what left the manifest. The deletion leaves the definitions, and
// nothing if the policy says so.
//
// KRAKE_UPGRADES names a folder with former versions of the manifests in the folder KRAKE_INSTALLS, of the same names.
func TestUpgradesOfInstallations(t *testing.T) {
	folder, former := os.Getenv("KRAKE_INSTALLS"), os.Getenv("KRAKE_UPGRADES")
	if folder == "" || former == "" {
		t.Skip("KRAKE_INSTALLS and KRAKE_UPGRADES name no folders with two versions of manifests of public installations")
	}
	files, err := filepath.Glob(filepath.Join(former, "*.yaml"))
	kit.Must(t, err)
	for _, file := range files {
		next := filepath.Join(folder, filepath.Base(file))
		if _, err := os.Stat(next); err != nil {
			t.Logf("there is no other version of %s", filepath.Base(file))
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			u := &upgrade{world: wide, namespace: "upgrade-" + name, app: "app-" + name, former: file, next: next}
			u.run(t)
		})
	}
}

// upgrade is an installation whose manifest changes from that of one file to that of another.
type upgrade struct {
	*world

	namespace, app string
	former, next   string
}

func (u *upgrade) run(t *testing.T) {
	u.grantAgent(t, u.namespace, u.app, u.former)
	u.grantAgent(t, u.namespace, u.app, u.next)
	u.grantAccount(t, u.namespace)
	t.Cleanup(func() { u.purge(t) })
	begin, started := u.Mark(t), time.Now()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("refused: %s", kit.List(refused(work(t, begin, ""))))
		}
	})
	u.plugin(t, "create", u.app, "--namespace", u.namespace, "--filename", u.former)
	u.settle(t)
	created := work(t, begin, "")
	took := time.Since(started)
	before := u.App(u.namespace, u.app).Read(t).Inventory

	middle, started := u.Mark(t), time.Now()
	u.Apply(t, u.printed(t))
	replaced := u.settleWithout(t)
	changed := work(t, middle, "")
	t.Logf("%d objects: %d writes in %s; upgrade: %d writes in %s", len(before), len(created), took, len(changed), time.Since(started))
	checkAccount(t, slices.Concat(created, changed), u.namespace)
	for _, r := range refused(slices.Concat(created, changed)) {
		if !slices.ContainsFunc(replaced, func(id manifest.ID) bool { return id.Name == r.Name() }) {
			t.Errorf("refused: %s: %d %s", r.URI, r.Status.Code, r.Status.Message)
		}
	}
	u.judge(t)
	u.judgeHistory(t, replaced)
	inventory := u.judgeLeavers(t, before)

	u.remove(t, u.namespace, u.app)
	u.judgeDeletion(t, inventory, manifest.ID.IsDefinition)
	u.Apply(t, u.printed(t, "adopt=true", "deletion-policy=delete"))
	u.settle(t)
	u.remove(t, u.namespace, u.app)
	u.judgeDeletion(t, inventory, func(manifest.ID) bool { return false })
}

// printed returns the Application of the new manifest as a user keeps it in Git, with annotations.
func (u *upgrade) printed(t *testing.T, annotations ...string) string {
	t.Helper()
	text := u.plugin(t, "create", u.app, "--namespace", u.namespace, "--filename", u.next, "--dry-run=client", "--output=yaml")
	if len(annotations) == 0 {
		return text
	}
	arguments := []string{"annotate", "--local", "--filename=-", "--output=yaml"}
	for _, annotation := range annotations {
		arguments = append(arguments, application.Prefix+annotation)
	}
	return u.KubectlWith(t, text, arguments...)
}

// unsettled returns a complaint unless the Application is reconciled with its current manifest.
func unsettled(app *application.Application) string {
	if app.Status.ObservedSpec == app.Spec.Digest() && meta.IsStatusConditionTrue(app.Status.Conditions, application.ReconciledCondition) {
		return ""
	}
	return fmt.Sprintf("%s: %+v %+v", app.Name, app.Status.Conditions, app.Status.Objects)
}

func (u *upgrade) settle(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() string { return unsettled(u.App(u.namespace, u.app).Read(t)) })
}

// settleWithout is settle, and deletes the objects that the API server refuses to change. Of these it must refuse an apply
// of the new manifest as well: a person who upgrades with kubectl has to delete them, too.
func (u *upgrade) settleWithout(t *testing.T) (refused []manifest.ID) {
	t.Helper()
	kit.Eventually(t, func() string {
		app := u.App(u.namespace, u.app).Read(t)
		if app.Status.ObservedSpec != app.Spec.Digest() {
			return "the status is about the former manifest"
		}
		for _, object := range app.Status.Objects {
			if object.Reason != status.Invalid || slices.Contains(refused, object.ID) {
				continue
			}
			client, resource := u.find(t, object.ID)
			if _, err := kit.ServerSideApply(t.Context(), client, resource); !apierrors.IsInvalid(err) {
				return fmt.Sprintf("%s: the agent cannot change it, and kubectl apply can: %s, %v", object.ID, object.Message, err)
			}
			t.Logf("deleted, as for kubectl apply: %s %v: %s", object.ID, object.Fields, object.Message)
			kit.Must(t, client.Delete(t.Context(), object.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
			refused = append(refused, object.ID)
		}
		return unsettled(app)
	})
	return refused
}

// read returns the resources of a file.
func (u *upgrade) read(t *testing.T, file string) (resources []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	decoded, err := manifest.Decode(text)
	kit.Must(t, err)
	for _, resource := range decoded {
		resources = append(resources, &unstructured.Unstructured{Object: resource.(map[string]any)})
	}
	return resources
}

// like returns the resource of the same kind and name, nil if there is none.
func like(resources []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	at := slices.IndexFunc(resources, func(r *unstructured.Unstructured) bool { return r.GetKind() == kind && r.GetName() == name })
	if at < 0 {
		return nil
	}
	return resources[at]
}

// find returns a resource of the new manifest, and a client for it.
func (u *upgrade) find(t *testing.T, id manifest.ID) (dynamic.ResourceInterface, *unstructured.Unstructured) {
	t.Helper()
	resource := like(u.read(t, u.next), id.Kind, id.Name)
	_, client, err := u.Locate(resource, u.namespace)
	kit.Must(t, err)
	return client, resource
}

// judge fails if kubectl apply of the new manifest would change anything, on the server's side, or on the client's side
// after an apply of the former manifest.
func (u *upgrade) judge(t *testing.T) {
	t.Helper()
	former, next := u.read(t, u.former), u.read(t, u.next)
	for _, resource := range next {
		name := resource.GetKind() + " " + resource.GetName()
		_, client, err := u.Locate(resource, u.namespace)
		kit.Must(t, err)
		live, err := client.Get(t.Context(), resource.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		applied, err := kit.ServerSideApply(t.Context(), client, resource)
		if err != nil || kit.Difference(live, applied) != "" {
			t.Errorf("kubectl apply --server-side would change %s: %v %s", name, err, kit.Difference(live, applied))
		}
		old := like(former, resource.GetKind(), resource.GetName())
		if old == nil {
			old = resource
		}
		if diff, err := kit.ClientSideApply(t.Context(), client, old, resource, live); err != nil || diff != "" {
			t.Errorf("kubectl apply would change %s: %v %s", name, err, diff)
		}
	}
	if !t.Failed() {
		t.Logf("kubectl apply would change none of %d objects", len(next))
	}
}

// judgeHistory fails if the history has a drift that was not repaired.
func (u *upgrade) judgeHistory(t *testing.T, refused []manifest.ID) {
	t.Helper()
	for _, drift := range u.App(u.namespace, u.app).Read(t).Status.Drifts {
		if drift.Repaired == "" && !slices.Contains(refused, drift.Object) {
			t.Errorf("in the history: %+v", drift)
		}
	}
}

// judgeLeavers fails unless the objects that left the manifest are gone, but for definitions. It returns the inventory.
func (u *upgrade) judgeLeavers(t *testing.T, before []manifest.ID) (inventory []manifest.ID) {
	t.Helper()
	inventory = u.App(u.namespace, u.app).Read(t).Inventory
	var leavers []manifest.ID
	for _, id := range before {
		if !slices.Contains(inventory, id) {
			leavers = append(leavers, id)
		}
	}
	u.judgeDeletion(t, leavers, manifest.ID.IsDefinition)
	for _, id := range leavers {
		if id.IsDefinition() {
			t.Cleanup(func() { u.Kubectl(t, "delete", "customresourcedefinition", id.Name, "--ignore-not-found") })
		}
	}
	t.Logf("left the manifest: %v", leavers)
	return inventory
}

// judgeDeletion fails unless exactly those objects exist that the policy keeps.
func (u *upgrade) judgeDeletion(t *testing.T, ids []manifest.ID, isKept func(manifest.ID) bool) {
	t.Helper()
	kept := 0
	for _, id := range ids {
		is, want := u.exists(id), isKept(id)
		if is != want {
			t.Errorf("%s: it exists: %t, want %t", id, is, want)
		}
		if is {
			kept++
		}
	}
	t.Logf("deleted: %d, kept: %d", len(ids)-kept, kept)
}

// purge deletes everything that a failed test has left.
func (u *upgrade) purge(t *testing.T) {
	t.Helper()
	if u.App(u.namespace, u.app).Stored(t) == nil {
		return
	}
	u.App(u.namespace, u.app).Annotate(t, "deletion-policy", string(application.Delete))
	u.remove(t, u.namespace, u.app)
}
