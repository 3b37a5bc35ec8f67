package cli

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/test/check"
)

// outcomesOf returns the parts of a forecast, each in a line.
func outcomesOf(f ui.Forecast) string {
	var lines strings.Builder
	for _, part := range f.Parts {
		lines.WriteString(part.Title + ": " + string(part.Tone) + ": " + part.Outcome + "\n")
	}
	return lines.String()
}

// As kubectl krake diff -f does, the page shows the others.
func TestForecastContinuesAfterAFailure(t *testing.T) {
	c := newCluster()
	c[liveDeployment] = metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden,
		Message: "you may not", Code: http.StatusForbidden,
	}
	s := c.uiSource(t)
	found, err := s.Forecast(t.Context(), "web", deployment+"---"+service)
	check.Must(t, err)
	check.Equal(t, "an object that may not be read", "apps/v1 Deployment demo/web: bad: read apps/v1 Deployment demo/web: you may not\n"+
		"v1 Service demo/web: busy: would be created\n", outcomesOf(found))

	first := inFile(service)["web.yaml"]
	refused := strings.NewReplacer("name: web, ann", "name: other, ann", "{name: web}", "{name: web, uid: x}").Replace(first)
	found, err = s.Forecast(t.Context(), "", first+"---\n"+refused+"---"+service)
	check.Must(t, err)
	check.Equal(t, "a refused Application", "v1 Service demo/web: busy: would be created\n"+
		"Application other: bad: the text: the Application other would be refused: mend this mistake\n", outcomesOf(found))
	said := strings.Join(found.Said, "\n")
	if !strings.Contains(said, "data.spec.manifest[0].metadata.uid: Forbidden") || !strings.Contains(said, "left out, not an Application: v1 Service web") {
		t.Errorf("said: %s", said)
	}
	_, err = s.Forecast(t.Context(), "", refused)
	check.Fails(t, "it is all that there is", err, "would be refused: mend this mistake")
}
