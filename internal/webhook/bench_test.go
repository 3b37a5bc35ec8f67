package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// BenchmarkHandle answers the review of a creation, from body to body, with the rights in the
// cache.
func BenchmarkHandle(b *testing.B) {
	for _, size := range []int{10 << 10, 100 << 10, 250 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			body := reviewOf(b, size)
			webhook := &admission.Webhook{Handler: newTestHandler(everybody)}
			apitypes.BuiltIn() // which the first request of a process waits for
			b.ReportAllocs()
			for b.Loop() {
				request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, path, bytes.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				webhook.ServeHTTP(recorder, request)
				if !bytes.Contains(recorder.Body.Bytes(), []byte(`"allowed":true`)) {
					b.Fatalf("%s", recorder.Body)
				}
			}
		})
	}
}

func reviewOf(b *testing.B, size int) []byte {
	b.Helper()
	object, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "demo", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{application.ManifestKey: kit.Manifest(size)},
	})
	check.Must(b, err)
	return bodyOf(b, &admissionv1.AdmissionRequest{
		UID: "review", Namespace: "demo", Name: "app", Operation: admissionv1.Create,
		UserInfo: authenticationv1.UserInfo{Username: "anna"},
		Object:   runtime.RawExtension{Raw: object},
	})
}
