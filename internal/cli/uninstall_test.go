package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// enrolments is a hub with clusters that were enrolled.
type enrolments struct {
	*hub

	clusters []string
	refusal  *apierrors.StatusError
}

func (e enrolments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/namespaces/krake-agents/serviceaccounts" {
		e.hub.ServeHTTP(w, r)
		return
	}
	if e.refusal != nil {
		answer(w, int(e.refusal.ErrStatus.Code), typed(e.refusal))
		return
	}
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, cluster := range e.clusters {
		if r.URL.Query().Get("labelSelector") != "krake.dev/enrolment" {
			e.t.Errorf("all accounts are asked for: %s", r.URL.RawQuery)
		}
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{"krake.dev/enrolment": cluster}}})
	}
	answer(w, http.StatusOK, &list)
}

func newEnrolments(t *testing.T, clusters []string, configMaps ...*corev1.ConfigMap) *enrolments {
	t.Helper()
	e := &enrolments{hub: newHub(t, configMaps...), clusters: clusters}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// on returns an Application that runs on a cluster.
func on(t *testing.T, cluster, name string, annotations ...string) *corev1.ConfigMap {
	t.Helper()
	return recorded(t, admitted(t, created(name, append(annotations, application.ClusterAnnotation, cluster)...)), nil)
}

func TestUninstallCheck(t *testing.T) {
	generated := on(t, "local", "shop", application.GeneratedFromAnnotation, "Habitat/shop")
	kept := on(t, "local", "kept")
	kept.Finalizers = append(kept.Finalizers, "example.org/backup")
	moved := on(t, "local", "moved")
	moved.Finalizers = append(moved.Finalizers, application.Finalizer("west"))
	degraded := recorded(t, admitted(t, created("degraded")), func(app *application.Application) { app.Status.State = application.StateDegraded })
	h := newEnrolments(t, []string{"west", "east"},
		on(t, "local", "web"), elsewhere(on(t, "east", "api"), "team"), deleted(on(t, "local", "leaving")), deleted(on(t, "east", "stuck")),
		deleted(on(t, "east", "given", application.ForceDeleteAnnotation, "true")), generated, kept, moved, deleted(degraded), created("free"))
	h.beat("local", time.Second)
	h.beat("west", time.Second)
	h.beat("east", 72*time.Hour)
	out, errOut, err := run(t, h.hub, newUninstallCommand, "--check")
	if !errors.Is(err, errDifferent) || errOut != "" {
		t.Errorf("error %v, warns %q", err, errOut)
	}
	golden(t, "uninstall.txt", out)
}

func TestUninstallIsClean(t *testing.T) {
	out, errOut, err := run(t, newEnrolments(t, nil, created("free")).hub, newUninstallCommand, "--check")
	const want = "Nothing is in the way: no agent holds an Application, and no cluster is enrolled.\n" +
		"No agent holds demo/free: they stay as ConfigMaps.\n" +
		"To uninstall: kubectl delete -k with the folder that was applied, as manifests/overlays/default\n"
	if err != nil || errOut != "" || out != want {
		t.Errorf("error %v, warns %q, prints %q, want %q", err, errOut, out, want)
	}
}

// An enrolled cluster blocks the removal, even if it has no Applications.
func TestUninstallWithClusters(t *testing.T) {
	out, _, err := run(t, newEnrolments(t, []string{"east"}).hub, newUninstallCommand, "--check")
	const want = "1 cluster is enrolled: east\n\nIn this order:\n" +
		"  1. kubectl krake remove east, and on that cluster kubectl delete -k with the folder agent of its enrolment\n" +
		"  2. kubectl delete -k with the folder that was applied, as manifests/overlays/default\n"
	if !errors.Is(err, errDifferent) || out != want {
		t.Errorf("error %v, prints %q, want %q", err, out, want)
	}
}

// An unknown state is never taken for an empty one.
func TestUninstallCheckFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("may not"))
	for _, c := range []struct {
		why    string
		refuse func(e *enrolments)
		want   string
	}{
		{"the Applications", func(e *enrolments) { e.refuse("configmaps", forbidden) }, "list the Applications of all namespaces: x is forbidden: may not"},
		{"the clusters", func(e *enrolments) { e.refusal = forbidden }, "list the clusters that are enrolled, as ServiceAccounts in namespace krake-agents: x is forbidden: may not"},
	} {
		e := newEnrolments(t, nil)
		c.refuse(e)
		out, _, err := run(t, e.hub, newUninstallCommand, "--check")
		if err == nil || errors.Is(err, errDifferent) || err.Error() != c.want || out != "" {
			t.Errorf("%s: error %v, want %s; prints %q", c.why, err, c.want, out)
		}
	}
	t.Run("the Leases", func(t *testing.T) {
		e := newEnrolments(t, nil, on(t, "local", "web"))
		e.refuse("leases", forbidden)
		out, errOut, err := run(t, e.hub, newUninstallCommand, "--check")
		if !errors.Is(err, errDifferent) || !strings.Contains(errOut, "Warning: you may not list Leases in namespace krake-agents") || strings.Contains(out, "stuck") {
			t.Errorf("error %v, warns %q, prints %q", err, errOut, out)
		}
	})
	_, _, err := run(t, newHub(t), newUninstallCommand)
	check.Fails(t, "without --check", err, "this command does not uninstall")
}
