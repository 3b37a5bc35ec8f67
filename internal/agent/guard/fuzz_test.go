package guard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// A client that reaches the port can send anything. Each request gets an answer without a panic: it passes,
// perhaps with warnings, or is refused with a reason.
func FuzzGuard(f *testing.F) {
	w := newWorld(f, deployment)
	w.app.Settings.Guard = application.GuardDeny
	for _, body := range reviews(f, w) {
		f.Add(body)
	}
	webhook := &admission.Webhook{Handler: w.handler}
	f.Fuzz(func(t *testing.T, body []byte) {
		response := answerTo(t, webhook, body)
		checkTexts(t, response.Warnings)
		if len(response.Patch) > 0 {
			t.Errorf("the guard changes the object: %s", response.Patch)
		}
		if !response.Allowed && (response.Result == nil || response.Result.Code < 400 || response.Result.Message == "") {
			t.Errorf("refused without a reason: %+v", response)
		}
		var sent admissionv1.AdmissionReview
		if json.Unmarshal(body, &sent) == nil && sent.Request != nil && response.Allowed && response.UID != sent.Request.UID {
			t.Errorf("the answer is to %q, not to %q", response.UID, sent.Request.UID)
		}
	})
}

// reviews are the bodies that the API server posts for each kind of request, and bodies that are no reviews.
func reviews(t testing.TB, w *world) [][]byte {
	t.Helper()
	image := w.edited(t, []any{map[string]any{"name": "log", "image": "log:1"}}, "spec", "template", "spec", "containers")
	requests := []admission.Request{
		w.update(t, w.live), w.seven(t), w.update(t, image), w.update(t, nil), w.remove(t), w.scale(t, 3, 7),
		by(w.seven(t), "carol"), dry(by(w.remove(t), "dora", "oncall")),
	}
	bodies := make([][]byte, 0, len(requests))
	for _, request := range requests {
		bodies = append(bodies, bodyOf(t, request))
	}
	return append(bodies, []byte("{}"), []byte("null"), []byte(""), []byte("{"),
		[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`))
}

func answerTo(t testing.TB, webhook http.Handler, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	webhook.ServeHTTP(recorder, request)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || recorder.Code != http.StatusOK || review.Response == nil {
		t.Fatalf("no answer, but %d %q: %v", recorder.Code, recorder.Body, err)
	}
	return review.Response
}

// The API server refuses an answer that does not name its review.
func TestTheAnswerOnTheWire(t *testing.T) {
	w := newWorld(t, deployment)
	webhook := &admission.Webhook{Handler: w.handler}
	response := answerTo(t, webhook, bodyOf(t, w.seven(t)))
	check.Equal(t, "warnings", []string{replicasText}, response.Warnings)
	if response.UID != "review" || !response.Allowed {
		t.Errorf("response %+v", response)
	}
	w.app.Settings.Guard = application.GuardDeny
	response = answerTo(t, webhook, bodyOf(t, w.seven(t)))
	if response.UID != "review" || response.Allowed || response.Result.Message != replicasText || len(response.Warnings) > 0 {
		t.Errorf("response %+v", response)
	}
}
