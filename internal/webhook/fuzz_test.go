package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	strictjson "sigs.k8s.io/json"

	"github.com/krake-observer/krake-observer/test/check"
)

// A client that reaches the port can send anything. Each request gets an answer without a
// panic: a matching patch, none the second time, or a reason.
func FuzzHandler(f *testing.F) {
	for _, body := range startingReviews(f) {
		f.Add(body)
	}
	webhook := &admission.Webhook{Handler: newTestHandler(everybody)}
	f.Fuzz(func(t *testing.T, body []byte) {
		response := answerTo(t, webhook, body)
		var sent admissionv1.AdmissionReview
		if json.Unmarshal(body, &sent) != nil || sent.Request == nil {
			if response.Allowed {
				t.Error("what is no review is allowed")
			}
			return
		}
		if response.UID != sent.Request.UID && (response.UID != "" || response.Allowed) { // the UID of an invalid review is unknown
			t.Errorf("the answer is to %q: %+v", response.UID, response)
		}
		if !response.Allowed {
			if response.Result == nil || response.Result.Code < 400 || response.Result.Message == "" || len(response.Patch) > 0 {
				t.Errorf("refused without a reason: %+v", response)
			}
			return
		}
		if isSentByServer(sent.Request.Object.Raw) && isSentByServer(sent.Request.OldObject.Raw) {
			checkSecondAnswer(t, webhook, sent, response)
		}
	})
}

func answerTo(t *testing.T, webhook http.Handler, body []byte) *admissionv1.AdmissionResponse {
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

// isSentByServer reports whether an API server could have written the object: each field once,
// in its exact case, and all of it valid UTF-8.
func isSentByServer(object []byte) bool {
	if len(object) == 0 || bytes.Equal(object, []byte("null")) {
		return true
	}
	var cm corev1.ConfigMap
	strict, err := strictjson.UnmarshalStrict(object, &cm)
	return err == nil && len(strict) == 0 && utf8.Valid(object)
}

func checkSecondAnswer(t *testing.T, webhook http.Handler, sent admissionv1.AdmissionReview, response *admissionv1.AdmissionResponse) {
	t.Helper()
	if len(response.Patch) == 0 {
		return
	}
	sent.Request.Object.Raw = patched(t, sent.Request.Object.Raw, response)
	body, err := json.Marshal(sent)
	check.Must(t, err)
	if second := answerTo(t, webhook, body); !second.Allowed || len(second.Patch) > 0 {
		t.Errorf("the second answer is another one: %s %v", second.Patch, second.Result)
	}
}

// startingReviews are the seeds of the fuzzer: creations, updates, objects that are no
// ConfigMaps, and bodies that are no reviews.
func startingReviews(f *testing.F) [][]byte {
	f.Helper()
	const created = `{metadata: {name: app, annotations: {krake.dev/application: v1}}, data: {spec.manifest: '` + manifestOne + `'}}`
	objects := []string{
		created, published,
		`{metadata: {name: app, annotations: {krake.dev/application: v1}}}`,
		`{metadata: {generateName: app-, annotations: {krake.dev/application: v2}}, immutable: true}`,
		`{metadata: {name: app, annotations: {krake.dev/application: v1}}, data: {spec.manifest: "a: &x [*x]"}}`,
		`{metadata: {name: app, annotations: {krake.dev/application: v1}}, data: {spec.manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}}`,
		`{metadata: {name: app, annotations: {krake.dev/application: v1}}, data: {spec.manifest: "{apiVersion: a/v1, kind: Song, metadata: {name: a, namespace: b}}", status.learned: x}, binaryData: {status: eA==}}`,
		`{metadata: {name: app}}`, `[]`, `"x"`, `{data: {a: 1}}`, `{metadata: []}`,
	}
	var bodies [][]byte
	for _, user := range []string{"alice", "system:serviceaccount:krake-agents:local"} {
		for _, object := range objects {
			bodies = append(bodies,
				rawReview(f, "CREATE", user, object, "null"), rawReview(f, "UPDATE", user, object, published), rawReview(f, "UPDATE", user, published, object))
		}
	}
	return append(bodies, rawReview(f, "DELETE", "alice", "null", published), []byte("{}"), []byte("null"), []byte(""), []byte("{"),
		[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`))
}

func rawReview(f *testing.F, operation, user, object, stored string) []byte {
	f.Helper()
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"review","namespace":"demo",`+
		`"name":"app","operation":%q,"userInfo":{"username":%q},"object":%s,"oldObject":%s}}`, operation, user, raw(f, object), raw(f, stored))
}
