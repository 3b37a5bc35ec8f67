package application_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestKeysOfWebhookAndAgents(t *testing.T) {
	type writers struct{ Agent, Status bool }
	user, agent, webhook := writers{}, writers{Agent: true, Status: true}, writers{Status: true}
	tests := map[string]writers{
		"spec.manifest":                  user,
		"spec.observer_schema":           user,
		"status.note":                    webhook, // of another format version: stored unchanged
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
		check.Equal(t, key, want, writers{Agent: application.IsAgentKey(key), Status: application.IsStatusKey(key)})
	}
}

func TestStatusLabelsAndFinalizers(t *testing.T) {
	labels := map[string]bool{
		"krake.dev/cluster": true, "krake.dev/state": true, "holder.krake.dev/edge": true,
		"krake.dev/other": false, "app": false,
	}
	for label, want := range labels {
		check.Equal(t, label, want, application.IsStatusLabel(label))
	}
	finalizers := map[string]bool{
		"local.krake.dev/resources": true, "edge.krake.dev/resources": true,
		"krake.dev/resources": false, "example.org/resources": false, "foregroundDeletion": false,
	}
	for finalizer, want := range finalizers {
		check.Equal(t, finalizer, want, application.IsOurFinalizer(finalizer))
	}
}

// The marks of a release prove the objects of the previous release: they are frozen.
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
	check.Equal(t, "marks", want, application.Marks(owner, "0c6c1f6f", id))
}

// The server copies a Service's labels, and a Deployment's annotations, to objects that it
// derives. A copied mark names another object.
func TestMarksProveOneObjectOfOneApplication(t *testing.T) {
	owner := types.NamespacedName{Namespace: "demo", Name: "web"}
	id := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "nginx"}
	object := application.Marks(owner, "1", id).On(map[string]any{})
	check.Equal(t, "the object is ours", true, application.Marks(owner, "1", id).Prove(object))
	newer := id
	newer.APIVersion = "apps/v2"
	check.Equal(t, "it is ours in another version of its API", true, application.Marks(owner, "1", newer).Prove(object))
	replicaSet, other, core := id, id, id
	replicaSet.Kind, other.Name, core.APIVersion = "ReplicaSet", "nginx2", "v1"
	for _, derived := range []manifest.ID{replicaSet, other, core} {
		check.Equal(t, "the marks prove "+derived.String(), false, application.Marks(owner, "1", derived).Prove(object))
	}
	check.Equal(t, "the marks prove it to an Application that was created again", false, application.Marks(owner, "2", id).Prove(object))
}
