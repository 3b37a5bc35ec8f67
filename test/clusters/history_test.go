package clusters

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// checkDump fails unless the Application's objects are on that cluster, as the spec has
// them, and on no other one.
func checkDump(t *testing.T, a app, cluster string, travellers map[string]*traveller) {
	t.Helper()
	for name, tr := range travellers {
		var want []string
		if name == cluster {
			want = []string{"configmap web-settings green", "deployment web web:1", "service web 80"}
		}
		if diff := cmp.Diff(want, ownedBy(t, a, tr.plane)); diff != "" {
			t.Fatalf("%s is on %s; on %s it has (-want +got):\n%s", a, cluster, name, diff)
		}
	}
	stored := a.Stored(t)
	for key := range stored.Data {
		if application.IsAgentKey(key) && !application.IsKeyOf(key, cluster, true) {
			t.Errorf("%s is on %s, and has %s", a, cluster, key)
		}
	}
	for _, finalizer := range stored.Finalizers {
		if finalizer != application.Finalizer(cluster) {
			t.Errorf("%s is on %s, and has finalizer %s", a, cluster, finalizer)
		}
	}
}

// ownedBy returns the objects that are marked as the Application's, each with the
// fields that the spec has.
func ownedBy(t *testing.T, a app, at *kit.Plane) []string {
	t.Helper()
	var found []string
	for _, kind := range []struct {
		name     string
		resource schema.GroupVersionResource
		value    []any
	}{
		{"configmap", kit.ConfigMaps, []any{"data", "colour"}},
		{"deployment", kit.Deployments, []any{"spec", "template", "spec", "containers", 0, "image"}},
		{"service", kit.Services, []any{"spec", "ports", 0, "port"}},
	} {
		marked := metav1.ListOptions{LabelSelector: application.OwnedByLabel}
		list, err := at.Dynamic.Resource(kind.resource).Namespace(a.Namespace).List(t.Context(), marked)
		kit.Must(t, err)
		for i := range list.Items {
			if object := &list.Items[i]; strings.HasPrefix(object.GetAnnotations()[application.OwnerAnnotation], a.String()+" ") {
				found = append(found, fmt.Sprintf("%s %s %v", kind.name, object.GetName(), kit.Field(object, kind.value...)))
			}
		}
	}
	slices.Sort(found)
	return found
}

// turn is an event in the life of an object on a cluster.
type turn struct {
	at      time.Time
	cluster string
	what    string // created, deleted, available, unavailable
	request kit.Request
}

// checkHistory fails unless each of the Application's objects existed on some cluster
// all the time. The Deployment must be available elsewhere when one is deleted, and no
// Service may arrive with values that a cluster assigned.
func checkHistory(t *testing.T, a app, travellers map[string]*traveller) {
	t.Helper()
	lives := map[string][]turn{}
	for name, tr := range travellers {
		for _, r := range tr.begin.Requests(t, kit.In(a.Namespace), kit.Request.IsAccepted, kit.Request.IsWrite) {
			object := r.Object.Resource + " " + r.Name()
			if what := turnOf(t, r); what != "" {
				at := r.Ended
				if what == "deleted" {
					at = r.Received // the earliest time
				}
				lives[object] = append(lives[object], turn{at, name, what, r})
			}
		}
	}
	for _, object := range []string{"configmaps web-settings", "services web", "deployments web"} {
		checkLife(t, object, lives[object])
	}
	for _, turn := range lives["services web"] {
		if turn.what == "created" {
			checkUnassigned(t, turn.request)
		}
	}
}

// turnOf returns what an accepted request changed in the life of its object, if that
// matters here.
func turnOf(t *testing.T, r kit.Request) string {
	t.Helper()
	switch {
	case r.Object.Subresource == "" && r.Verb == "create":
		return "created"
	case r.Object.Subresource == "" && r.Verb == "delete":
		return "deleted"
	case r.Object.Resource == "deployments" && r.Object.Subresource == "status":
		var body struct {
			Status struct {
				Available int `json:"availableReplicas"`
			} `json:"status"`
		}
		kit.Must(t, json.Unmarshal(r.Body, &body))
		if body.Status.Available > 0 {
			return "available"
		}
		return "unavailable"
	}
	return ""
}

// checkLife fails unless the object existed elsewhere whenever it was deleted, and was
// available there if it can be.
func checkLife(t *testing.T, object string, life []turn) {
	t.Helper()
	slices.SortStableFunc(life, func(a, b turn) int { return a.at.Compare(b.at) })
	has, available := map[string]bool{}, map[string]bool{}
	moves := 0
	for _, turn := range life {
		switch turn.what {
		case "available", "unavailable":
			available[turn.cluster] = turn.what == "available"
		case "created":
			has[turn.cluster] = true
			available[turn.cluster] = object != "deployments web"
		case "deleted":
			moves++
			delete(has, turn.cluster)
			delete(available, turn.cluster)
			if len(has) == 0 {
				t.Errorf("%s was on no cluster after %s", object, turn.request)
			}
			if !slices.Contains(slices.Collect(maps.Values(available)), true) {
				t.Errorf("%s was available on no cluster after %s", object, turn.request)
			}
		}
	}
	if len(has) != 1 || moves == 0 {
		t.Errorf("%s was deleted %d times, and is on %v, says the audit log", object, moves, has)
	}
}

// checkUnassigned fails if a Service was created with an address or port that another
// cluster assigned.
func checkUnassigned(t *testing.T, r kit.Request) {
	t.Helper()
	var service corev1.Service
	kit.Must(t, json.Unmarshal(r.Body, &service))
	if service.Spec.ClusterIP != "" || len(service.Spec.ClusterIPs) > 0 || service.Spec.Ports[0].NodePort != 0 {
		t.Errorf("the Service was created with clusterIP %q, clusterIPs %v and nodePort %d: %s",
			service.Spec.ClusterIP, service.Spec.ClusterIPs, service.Spec.Ports[0].NodePort, r)
	}
}
