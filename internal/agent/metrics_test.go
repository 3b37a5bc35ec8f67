package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/signature"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Until the Applications are known, there are no metrics about them.
func TestUnknownApplicationsAreNotNone(t *testing.T) {
	check.Equal(t, "states", 0, len((&replica{known: &hub.Known{}}).countStates()))
}

// Writes to Applications and lists for comparison are counted.
func TestRequestsAreCounted(t *testing.T) {
	var reasons []string
	count := func(reason string) { reasons = append(reasons, reason) }
	cm := kit.Application(appName.Namespace, appName.Name, "[]", kit.Data(application.MangledSchemaKey, "[]"), kit.Data(application.LastAppliedKey, "[]"))
	cm.UID = "1"
	cm.Labels = map[string]string{application.ClusterLabel: "local", application.HolderLabel("local"): "true"}
	client := telemetry.CountWrites(fake.NewClientBuilder().WithObjects(cm).Build(), count)
	keys := func(context.Context) (signature.Keys, string, error) { return nil, "", nil }
	store := hub.NewStore(client, "ourselves", "local", keys, func() error { return nil })
	app, err := store.Get(t.Context(), appName)
	kit.Must(t, err)
	app.Status.State = application.StateRunning
	kit.Must(t, store.Update(t.Context(), app))
	kit.Must(t, store.Update(t.Context(), app)) // writes nothing

	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	lists, err := telemetry.NewLists(&rest.Config{Host: api.URL}, count)
	kit.Must(t, err)
	if _, err := lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("listed: %v", err)
	}
	check.Equal(t, "counted", []string{"status", "resync"}, reasons)
}

// scrape returns the lines of the metrics.
func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}
