package application_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// These names are in the objects of users and in the policies that are shipped:
// they never change within a format version.
func TestNames(t *testing.T) {
	got := map[string]string{
		"format":          application.FormatAnnotation + ": " + application.Format,
		"cluster":         application.ClusterAnnotation,
		"local":           application.LocalCluster,
		"manifest":        application.ManifestKey,
		"observer schema": application.ObserverSchemaKey,
		"mangled":         application.MangledSchemaKey,
		"applied":         application.LastAppliedKey,
		"observed":        application.LastObservedKey,
		"learned":         application.LearnedKey,
		"status":          application.StatusKey,
		"inventory":       application.InventoryKey("edge"),
		"holder":          application.HolderLabel("edge"),
		"finalizer":       application.Finalizer("edge"),
		"cluster label":   application.ClusterLabel,
		"state label":     application.StateLabel,
		"owned by":        application.OwnedByLabel,
		"owner":           application.OwnerAnnotation,
		"owner UID":       application.OwnerUIDAnnotation,
	}
	want := map[string]string{
		"format":          "krake.dev/application: v1",
		"cluster":         "krake.dev/cluster",
		"local":           "local",
		"manifest":        "spec.manifest",
		"observer schema": "spec.observer_schema",
		"mangled":         "status.mangled_observer_schema",
		"applied":         "status.last_applied_manifest",
		"observed":        "status.last_observed_manifest",
		"learned":         "status.learned",
		"status":          "status",
		"inventory":       "inventory.edge",
		"holder":          "holder.krake.dev/edge",
		"finalizer":       "edge.krake.dev/resources",
		"cluster label":   "krake.dev/cluster",
		"state label":     "krake.dev/state",
		"owned by":        "krake.dev/owned-by",
		"owner":           "krake.dev/owner",
		"owner UID":       "krake.dev/owner-uid",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestIsReserved(t *testing.T) {
	tests := map[string]bool{
		"krake.dev/owned-by":         true,
		"krake.dev/anything":         true,
		"holder.krake.dev/edge":      true,
		"a.b.krake.dev/c":            true,
		"krake.dev":                  true, // a name without a prefix, but who would want it
		"app.kubernetes.io/name":     false,
		"notkrake.dev/owned-by":      false,
		"krake.dev.example.org/name": false,
		"example.org/krake.dev":      false,
		"":                           false,
	}
	for key, want := range tests {
		if got := application.IsReserved(key); got != want {
			t.Errorf("IsReserved(%q) = %v", key, got)
		}
	}
}

func TestKeysOfWebhookAndAgents(t *testing.T) {
	type writers struct{ Agent, Status bool }
	user, agent, webhook := writers{}, writers{Agent: true, Status: true}, writers{Status: true}
	tests := map[string]writers{
		"spec.manifest":                  user,
		"spec.observer_schema":           user,
		"status.note":                    webhook, // of another format version: kept as it is stored
		"statusless":                     user,
		"inventory":                      user,
		"status":                         agent,
		"status.learned":                 agent,
		"status.last_observed_manifest":  agent,
		"inventory.local":                agent,
		"inventory.edge":                 agent,
		"status.mangled_observer_schema": webhook,
		"status.last_applied_manifest":   webhook, // and the agent, which computes the same
	}
	for key, want := range tests {
		got := writers{Agent: application.IsAgentKey(key), Status: application.IsStatusKey(key)}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", key, got, want)
		}
	}
}

func TestStatusLabelsAndFinalizers(t *testing.T) {
	labels := map[string]bool{
		"krake.dev/cluster": true, "krake.dev/state": true, "holder.krake.dev/edge": true,
		"krake.dev/other": false, "app": false,
	}
	for label, want := range labels {
		if got := application.IsStatusLabel(label); got != want {
			t.Errorf("IsStatusLabel(%q) = %v", label, got)
		}
	}
	finalizers := map[string]bool{
		"local.krake.dev/resources": true, "edge.krake.dev/resources": true,
		"krake.dev/resources": false, "example.org/resources": false, "foregroundDeletion": false,
	}
	for finalizer, want := range finalizers {
		if got := application.IsOurFinalizer(finalizer); got != want {
			t.Errorf("IsOurFinalizer(%q) = %v", finalizer, got)
		}
	}
}

// The marks of a release prove the objects of the release before: they are frozen.
func TestMarks(t *testing.T) {
	owner := types.NamespacedName{Namespace: "demo", Name: "web"}
	id := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "nginx"}
	want := manifest.Marks{
		Labels: map[string]string{"krake.dev/owned-by": "e31527df83837ded"},
		Annotations: map[string]string{
			"krake.dev/owner":     "demo/web apps/Deployment/demo/nginx",
			"krake.dev/owner-uid": "0c6c1f6f",
		},
	}
	if diff := cmp.Diff(want, application.Marks(owner, "0c6c1f6f", id)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The server copies a Service's labels, and a Deployment's annotations, to
// objects that it derives: what was copied names another object.
func TestMarksProveOneObjectOfOneApplication(t *testing.T) {
	owner := types.NamespacedName{Namespace: "demo", Name: "web"}
	id := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "nginx"}
	object := application.Marks(owner, "1", id).On(map[string]any{})
	if !application.Marks(owner, "1", id).Prove(object) {
		t.Error("the object is not ours")
	}
	newer := id
	newer.APIVersion = "apps/v2"
	if !application.Marks(owner, "1", newer).Prove(object) {
		t.Error("the object is lost with the version of its API")
	}
	replicaSet, other, core := id, id, id
	replicaSet.Kind, other.Name, core.APIVersion = "ReplicaSet", "nginx2", "v1"
	for _, derived := range []manifest.ID{replicaSet, other, core} {
		if application.Marks(owner, "1", derived).Prove(object) {
			t.Errorf("the marks of %s prove %s", id, derived)
		}
	}
	if application.Marks(owner, "2", id).Prove(object) {
		t.Error("the marks prove it to an Application that was created again")
	}
}
