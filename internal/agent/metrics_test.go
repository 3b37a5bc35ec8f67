package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// While the Applications are not known yet, nothing is said of them.
func TestUnknownApplicationsAreNotNone(t *testing.T) {
	if counts := (&applications{}).count(); len(counts) != 0 {
		t.Errorf("counted: %v", counts)
	}
}

// What is written to Applications, and what is listed to compare, is counted.
func TestRequestsAreCounted(t *testing.T) {
	var reasons []string
	count := func(reason string) { reasons = append(reasons, reason) }
	h := newHub(t)
	app := h.mustGet(t)
	h.client = telemetry.CountWrites(h.client, count)
	h.mustRun(t, app, application.StateRunning)
	h.mustRun(t, app, application.StateRunning) // writes nothing

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
