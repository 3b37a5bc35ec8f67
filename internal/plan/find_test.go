package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

const several = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: home, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: other}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader, namespace: shop}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: web}]}}}}
`

// newPlan returns an Application whose hooks need a Secret, and its plan.
func newPlan(t *testing.T) (*application.Application, *plan.Cache) {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "app-uid", Annotations: map[string]string{
			application.FormatAnnotation: application.Format, application.HooksAnnotation: "complete",
		}},
		Data: map[string]string{application.ManifestKey: several},
	}
	check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
	app, err := application.Read(cm)
	check.Must(t, err)
	var none *plan.Cache
	cached, err := none.Of(app)
	check.Must(t, err)
	return app, cached
}

func TestFindReturnsTheObjectAtAPlace(t *testing.T) {
	app, cached := newPlan(t)
	check.Equal(t, "a hook has a Secret", true, len(cached.Secrets()) > 0)
	secret := cached.Drafts()[len(cached.Drafts())-1].ID
	at := func(apiVersion, kind, namespace, name string) manifest.ID {
		return manifest.ID{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	cases := []struct {
		name  string
		at    manifest.ID
		home  string
		found bool
	}{
		{"without a namespace in the manifest", at("v1", "ConfigMap", "shop", "bare"), "shop", true},
		{"in a namespace of another name on the target", at("v1", "ConfigMap", "prod", "bare"), "prod", true},
		{"the Application's namespace in the manifest", at("v1", "ConfigMap", "prod", "home"), "prod", true},
		{"not in the namespace of that name on the target", at("v1", "ConfigMap", "shop", "bare"), "prod", false},
		{"a namespace of its own keeps its name", at("v1", "ConfigMap", "other", "elsewhere"), "prod", true},
		{"not in another one", at("v1", "ConfigMap", "prod", "elsewhere"), "prod", false},
		{"cluster-scoped, whatever the manifest says", at("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader"), "prod", true},
		{"in another version of its API", at("apps/v1beta2", "Deployment", "shop", "web"), "shop", true},
		{"not in another API", at("extensions/v1", "Deployment", "shop", "web"), "shop", false},
		{"not of another kind", at("v1", "Service", "shop", "web"), "shop", false},
		{"not by another name", at("v1", "ConfigMap", "shop", "absent"), "shop", false},
		{"not the Secret of a hook, whose values no plan has", at("v1", secret.Kind, "shop", secret.Name), "shop", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			resource := gvr.GroupVersionResource{Resource: "things"}
			object, found, err := cached.Find(app, manifest.Ref{ID: c.at, Resource: resource}, c.home, plan.NoTypes)
			check.Must(t, err)
			check.Equal(t, "found", c.found, found)
			if !found {
				return
			}
			check.Equal(t, "resource", resource, object.Resource)
			check.Equal(t, "namespace", c.at.Namespace, object.Namespace)
			owner, isMarked := application.OwnerOf(object.Body())
			check.Equal(t, "it has marks", true, isMarked)
			check.Equal(t, "owner", app.NamespacedName, owner)
			check.Empty(t, "differences of the object that the agent creates", object.Marked.Compare(object.MarkedDesired(), object.Body()))
		})
	}
}

// The loop's objects keep their places.
func TestFindLeavesTheCacheAsItIs(t *testing.T) {
	app, cached := newPlan(t)
	before := cached.Drafts()
	for _, draft := range before {
		at := manifest.Ref{ID: draft.ID}
		at.Namespace = "prod"
		_, _, err := cached.Find(app, at, "prod", plan.NoTypes)
		check.Must(t, err)
	}
	for i, draft := range cached.Drafts() {
		check.Equal(t, "draft", before[i].ID, draft.ID)
		check.Equal(t, "desired", before[i].Desired(), draft.Desired())
	}
}
