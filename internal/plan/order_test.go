package plan_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// What an Application created is deleted with it. A definition stays with the objects of its kind, unless the user has said
// that it goes.
func TestIsReleased(t *testing.T) {
	definition := manifest.ID{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "songs.example.com"}
	namesake := manifest.ID{APIVersion: "example.com/v1", Kind: "CustomResourceDefinition", Name: "songs.example.com"}
	service := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	adopted := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "old"}
	nothingSaid := application.Settings{DeletionPolicy: application.Delete}
	deletes := application.Settings{DeletionPolicy: application.Delete, DeletesAll: true}
	orphans := application.Settings{DeletionPolicy: application.Orphan}
	for name, c := range map[string]struct {
		settings application.Settings
		deleted  bool
		stay     []manifest.ID
	}{
		"left the manifest":                  {nothingSaid, false, []manifest.ID{definition, adopted}},
		"left the manifest, delete":          {deletes, false, nil},
		"left the manifest, orphan":          {orphans, false, []manifest.ID{definition, adopted}},
		"the Application is deleted":         {nothingSaid, true, []manifest.ID{definition, adopted}},
		"the Application is deleted, delete": {deletes, true, nil},
		"the Application is deleted, orphan": {orphans, true, []manifest.ID{definition, namesake, service, adopted}},
	} {
		t.Run(name, func(t *testing.T) {
			app := &application.Application{Settings: c.settings, Deleted: c.deleted, Adopted: []manifest.ID{adopted}}
			var stay []manifest.ID
			for _, id := range []manifest.ID{definition, namesake, service, adopted} {
				if plan.IsReleased(app, id) {
					stay = append(stay, id)
				}
			}
			check.Equal(t, "what stays", c.stay, stay)
		})
	}
}

// What others need is created before them, and what the API server asks about others, after them. Objects of one kind keep their
// order.
func TestOrderOfCreation(t *testing.T) {
	of := func(kinds ...string) (ids []manifest.ID) {
		for _, kind := range kinds {
			ids = append(ids, manifest.ID{Kind: kind})
		}
		return ids
	}
	want := of("Namespace", "CustomResourceDefinition", "PriorityClass", "ResourceQuota", "ServiceAccount", "ClusterRoleBinding", "Secret", "Service", "Deployment", "Song",
		"ValidatingWebhookConfiguration", "APIService")
	check.Equal(t, "an installation", want, plan.InOrder(of("ValidatingWebhookConfiguration", "Song", "Deployment", "Service", "Secret", "ServiceAccount", "APIService",
		"ClusterRoleBinding", "ResourceQuota", "CustomResourceDefinition", "Namespace", "PriorityClass")))
	two := []manifest.ID{{Kind: "ConfigMap", Name: "b"}, {Kind: "ConfigMap", Name: "a"}}
	check.Equal(t, "of one kind", two, plan.InOrder(two))
}
