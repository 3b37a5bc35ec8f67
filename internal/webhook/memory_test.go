package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/hostile"
)

// No Application makes admission take half of the memory of its Pod: what is computed is bounded
// before it is made, and a refusal names the field and the way out.
func TestNoApplicationTakesAdmissionDown(t *testing.T) {
	limit := hostile.LimitOf(t, "base/webhook/deployment.yaml")
	hook := &admission.Webhook{Handler: newTestHandler(everybody)}
	for _, shape := range hostile.Shapes() {
		t.Run(shape.Why, func(t *testing.T) {
			object, err := json.Marshal(shape.ConfigMap())
			check.Must(t, err)
			body := bodyOf(t, &admissionv1.AdmissionRequest{
				UID: "review", Namespace: "demo", Name: "app", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object},
			})
			var answer *admissionv1.AdmissionResponse
			hostile.Measure(func() { answer = answerTo(t, hook, body) }).Check(t, limit)
			if shape.Cause == "" {
				check.Equal(t, "allowed", true, answer.Allowed)
				return
			}
			if answer.Allowed || answer.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(answer.Result.Message, shape.Cause) {
				t.Errorf("the answer is %+v, want a refusal with %q", answer.Result, shape.Cause)
			}
		})
	}
}
