package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// What a user with edit may write, an Application of the user may have, with these exceptions: Secrets,
// whose values a ConfigMap would show; Events and Leases, which are no desired state; and Habitats,
// of which Applications are made.
func TestAgentsMayWriteTheKindsOfEdit(t *testing.T) {
	want := writable(t, "edit")
	for _, leftOut := range []string{"secrets", "events", "events.events.k8s.io", "leases.coordination.k8s.io", "habitats.habitat.sh"} {
		at := slices.Index(want, leftOut)
		if at < 0 && leftOut == "events.events.k8s.io" { // Kubernetes 1.33 has no such rule
			continue
		}
		if at < 0 {
			t.Fatalf("edit may not write %s: it may write %v", leftOut, want)
		}
		want = slices.Delete(want, at, at+1)
	}
	got := slices.DeleteFunc(writable(t, "krake-workloads"), func(resource string) bool { // edit has them from Kubernetes 1.34 on
		return strings.HasSuffix(resource, ".resource.k8s.io") && !slices.Contains(want, resource)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-edit +the agent:\n%s", diff)
	}
}

// writable returns the resources that a ClusterRole allows to create, patch and delete.
func writable(t *testing.T, name string) []string {
	t.Helper()
	role, err := server.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	kit.Must(t, err)
	var found []string
	for _, rule := range role.Rules {
		if !isSubset([]string{"create", "patch", "delete"}, rule.Verbs) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				// The group extensions has no kinds any more.
				if !strings.Contains(resource, "/") && group != "extensions" {
					found = append(found, strings.TrimSuffix(resource+"."+group, "."))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
