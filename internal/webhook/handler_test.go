package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakeauthorization "k8s.io/client-go/kubernetes/typed/authorization/v1/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/check/hostile"
)

// post sends a review to the webhook as the API server does, and returns its answer.
func post(t *testing.T, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	return answerTo(t, &admission.Webhook{Handler: newTestHandler(everybody)}, body)
}

func everybody(*authorizationv1.SubjectAccessReview) (bool, error) { return true, nil }

// newTestHandler answers for a hub with a few kinds, where may decides about rights.
// (test/admission tests the rights of a real API server.)
func newTestHandler(may func(*authorizationv1.SubjectAccessReview) (bool, error)) *handler {
	reviewer := &fakeauthorization.FakeAuthorizationV1{Fake: &clienttesting.Fake{}}
	reviewer.AddReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review, _ := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		answer := review.DeepCopy()
		var err error
		answer.Status.Allowed, err = may(answer)
		return true, answer, err
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Service"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return &handler{
		kinds:     discovery.NewGuesser(mapper, clock.RealClock{}),
		authority: newAuthority(reviewer.SubjectAccessReviews(), clock.RealClock{}),
		signing:   newTestSigning(),
		computing: semaphore.NewWeighted(computingAtOnce),
		now:       time.Now,
		logger:    logr.Discard(),
	}
}

// requestFor is a request about an object, with the stored one if it is an update.
func requestFor(object, stored []byte) *admissionv1.AdmissionRequest {
	request := &admissionv1.AdmissionRequest{
		UID: "review", Namespace: "demo", Name: "app", Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: object},
	}
	if stored != nil {
		request.Operation, request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: stored}
	}
	return request
}

func review(t *testing.T, object, stored []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	return post(t, bodyOf(t, requestFor(object, stored)))
}

func bodyOf(t testing.TB, request *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	check.Must(t, err)
	return body
}

// raw returns the JSON of a YAML text, or nil without a text.
func raw(t testing.TB, text string) []byte {
	t.Helper()
	if text == "" {
		return nil
	}
	object, err := yaml.YAMLToJSON([]byte(text))
	check.Must(t, err)
	return object
}

// patched applies the answer to an object as the API server does.
func patched(t *testing.T, object []byte, response *admissionv1.AdmissionResponse) []byte {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("refused: %+v", response.Result)
	}
	if len(response.Patch) == 0 {
		return object
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	check.Must(t, err)
	after, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("%s does not fit: %v", response.Patch, err)
	}
	return after
}

// operations returns the operations of a patch, without the values: "add /data/status".
func operations(t *testing.T, patch []byte) []string {
	t.Helper()
	if len(patch) == 0 {
		return nil
	}
	var decoded []struct{ Op, Path string }
	check.Must(t, json.Unmarshal(patch, &decoded))
	var texts []string
	for _, operation := range decoded {
		texts = append(texts, operation.Op+" "+operation.Path)
	}
	slices.Sort(texts)
	return texts
}

const (
	manifestOne = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "1"}}`
	manifestTwo = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "2"}}`

	mangled    = `[{"apiVersion":"v1","data":{"a":null},"kind":"ConfigMap","metadata":{"name":"config"}}]`
	appliedOne = `[{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"config"}}]`
	appliedTwo = `[{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"config"}}]`
)

// computed are the computed data of manifestOne.
const computed = `
data:
  spec.manifest: '` + manifestOne + `'
  status.mangled_observer_schema: '` + mangled + `'
  status.last_applied_manifest: '` + appliedOne + `'
`

// published are the stored data of an Application with manifestOne that its agent has carried
// out.
const published = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  namespace: demo
  annotations: {krake.dev/application: v1}
  labels: {krake.dev/cluster: local, krake.dev/state: RUNNING, holder.krake.dev/local: "true"}
  finalizers: [local.krake.dev/resources]
data:
  spec.manifest: '` + manifestOne + `'
  status.mangled_observer_schema: '` + mangled + `'
  status.last_applied_manifest: '` + appliedOne + `'
  status.last_observed_manifest: '` + appliedOne + `'
  status: '{"state":"RUNNING"}'
  inventory.local: '[{"apiVersion":"v1","kind":"ConfigMap","namespace":"demo","name":"config"}]'
`

// The result for each object, with the operations: only the required ones, which match the
// object as the API server sent it.
func TestPatch(t *testing.T) {
	for _, c := range []struct {
		name           string
		object, stored string
		operations     []string
		want           string // empty: the object as it was sent
	}{
		{
			name: "a creation, without labels and namespace: what lacks a parent comes with it",
			object: `
apiVersion: v1
kind: ConfigMap
metadata: {name: app, annotations: {krake.dev/application: v1}}
data: {spec.manifest: '` + manifestOne + `'}
`,
			operations: []string{"add /data/status.last_applied_manifest", "add /data/status.mangled_observer_schema", addSignature, "add /metadata/labels"},
			want: `
apiVersion: v1
kind: ConfigMap
metadata: {name: app, annotations: {krake.dev/application: v1}, labels: {krake.dev/cluster: local, holder.krake.dev/local: "true"}}
` + computed,
		},
		{
			name: "fields that this program does not know are not its to remove",
			object: `
apiVersion: v1
kind: ConfigMap
metadata: {name: app, annotations: {krake.dev/application: v1}, labels: {team: x}, future: {a: [1, 2]}}
data: {spec.manifest: '` + manifestOne + `', other: mine}
future: [{a: 1}]
`,
			operations: []string{
				"add /data/status.last_applied_manifest", "add /data/status.mangled_observer_schema", addSignature,
				"add /metadata/labels/holder.krake.dev~1local", "add /metadata/labels/krake.dev~1cluster",
			},
			want: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  annotations: {krake.dev/application: v1}
  labels: {krake.dev/cluster: local, holder.krake.dev/local: "true", team: x}
  future: {a: [1, 2]}
data:
  spec.manifest: '` + manifestOne + `'
  other: mine
  status.mangled_observer_schema: '` + mangled + `'
  status.last_applied_manifest: '` + appliedOne + `'
future: [{a: 1}]
`,
		},
		{name: "an update that changes nothing is not answered with a change", object: published, stored: published},
		{
			name:   "an update of the spec: what it says is desired, what was observed stays",
			object: strings.Replace(published, manifestOne, manifestTwo, 1), stored: published,
			operations: []string{"replace /data/status.last_applied_manifest", "replace /metadata/annotations/krake.dev~1signature"},
			want:       strings.Replace(strings.Replace(published, manifestOne, manifestTwo, 1), appliedOne, appliedTwo, 1),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			object, stored, want := raw(t, c.object), signed(t, raw(t, c.stored)), signed(t, raw(t, cmp.Or(c.want, c.object)))
			if strings.Contains(c.object, "holder.") {
				object = withSignatureOf(t, object, stored) // as it was read
			}
			response := review(t, object, stored)
			after := patched(t, object, response)
			check.Equal(t, "object", decoded(t, want), decoded(t, after))
			check.Equal(t, "operations", c.operations, operations(t, response.Patch))
			// Admission may call twice: the second call adds nothing.
			if again := review(t, after, stored); len(again.Patch) > 0 || !again.Allowed {
				t.Errorf("asked again, the answer is %v, %s", again.Allowed, again.Patch)
			}
		})
	}
}

const addSignature = "add /metadata/annotations/krake.dev~1signature"

// signed returns the ConfigMap as the test's webhook has signed it, nil for nil.
func signed(t *testing.T, object []byte) []byte {
	t.Helper()
	if object == nil {
		return nil
	}
	var cm corev1.ConfigMap
	check.Must(t, json.Unmarshal(object, &cm))
	cm.Namespace = "demo"
	check.Must(t, newTestSigning().sign(&cm))
	return annotated(t, object, cm.Annotations)
}

func withSignatureOf(t *testing.T, object, stored []byte) []byte {
	t.Helper()
	var cm corev1.ConfigMap
	check.Must(t, json.Unmarshal(stored, &cm))
	return annotated(t, object, cm.Annotations)
}

func annotated(t *testing.T, object []byte, annotations map[string]string) []byte {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	check.Must(t, err)
	object, err = jsonpatch.MergePatch(object, patch)
	check.Must(t, err)
	return object
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	check.Must(t, json.Unmarshal(text, &value))
	return value
}

// A refusal is a 422 that names each place, so that kubectl prints them all.
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		name           string
		object, stored string
		causes         []string
	}{
		{"no data at all", `{metadata: {name: app, annotations: {krake.dev/application: v1}}}`, "",
			[]string{"FieldValueRequired data.spec.manifest"}},
		{"an update is checked as a creation is", strings.Replace(published, manifestOne, "{}", 1), published, []string{
			"FieldValueInvalid data.spec.manifest[0].apiVersion",
			"FieldValueInvalid data.spec.manifest[0].kind",
			"FieldValueInvalid data.spec.manifest[0].metadata",
		}},
		{"an Application does not become a plain ConfigMap, which nobody would clean up after",
			`{metadata: {name: app, namespace: demo}}`, published, []string{"FieldValueForbidden metadata.annotations[krake.dev/application]"}},
		{"a mode that is none, though nothing is computed for it",
			strings.Replace(published, "application: v1", "application: v1, krake.dev/mode: suspended", 1), published,
			[]string{"FieldValueInvalid metadata.annotations[krake.dev/mode]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			response := review(t, raw(t, c.object), raw(t, c.stored))
			if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
				t.Fatalf("allowed is %v, %+v", response.Allowed, response.Result)
			}
			if len(response.Patch) > 0 {
				t.Errorf("a refusal with a patch: %s", response.Patch)
			}
			check.Equal(t, "causes", c.causes, slices.Sorted(slices.Values(causesOf(response))))
		})
	}
}

func causesOf(response *admissionv1.AdmissionResponse) []string {
	var causes []string
	for _, cause := range response.Result.Details.Causes {
		causes = append(causes, fmt.Sprintf("%s %s", cause.Type, cause.Field))
	}
	return causes
}

// The webhook's clock decides whether a hold is past.
func TestHoldThatIsPast(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	held := raw(t, strings.Replace(published, "application: v1", `application: v1, krake.dev/hold-until: "2026-01-02T12:00:00Z"`, 1))
	for now, want := range map[time.Time]int{at.Add(-time.Minute): 0, at.Add(time.Minute): 1} {
		h := newTestHandler(everybody)
		h.now = func() time.Time { return now }
		for _, request := range []*admissionv1.AdmissionRequest{requestFor(held, nil), requestFor(held, raw(t, published))} {
			response := h.Handle(t.Context(), admission.Request{AdmissionRequest: *request})
			told := slices.DeleteFunc(response.Warnings, func(w string) bool { return !strings.Contains(w, "hold-until]: this time is past") })
			if !response.Allowed || len(told) != want {
				t.Errorf("at %s, %s: allowed is %v, warnings %q", now, request.Operation, response.Allowed, response.Warnings)
			}
		}
	}
}

// A write that changes nothing is admitted without a review of rights if the stored Application is signed. One that is not
// signed, as if it was written without the webhook, is reviewed as a whole, and a refused one is not signed.
func TestWhatWasNotAdmittedIsReviewed(t *testing.T) {
	refusing := &admission.Webhook{Handler: newTestHandler(func(*authorizationv1.SubjectAccessReview) (bool, error) { return false, nil })}
	unsigned := raw(t, published)
	touched := strings.Replace(published, "{krake.dev/application: v1}", "{krake.dev/application: v1, note: written-again}", 1)
	for _, c := range []struct {
		what   string
		stored []byte
		want   bool
	}{{"signed", signed(t, unsigned), true}, {"not signed", unsigned, false}, {"signed by another key", bytes.Replace(signed(t, unsigned), []byte("signature\":\""), []byte("signature\":\"0"), 1), false}} {
		response := answerTo(t, refusing, bodyOf(t, requestFor(raw(t, touched), c.stored)))
		if response.Allowed != c.want || bytes.Contains(response.Patch, []byte("signature")) != c.want {
			t.Errorf("%s: allowed is %v, with patch %s", c.what, response.Allowed, response.Patch)
		}
	}
}

// A dry run is not signed: its answer would be a signature of what is not stored.
func TestDryRunsAreNotSigned(t *testing.T) {
	request := requestFor(raw(t, published), nil)
	request.DryRun = new(true)
	if response := post(t, bodyOf(t, request)); !response.Allowed || bytes.Contains(response.Patch, []byte("signature")) {
		t.Errorf("allowed is %v, with patch %s", response.Allowed, response.Patch)
	}
}

// The webhook records the user of the request, whatever the request says.
func TestTheHolderIsTheUserOfTheRequest(t *testing.T) {
	suspended := strings.Replace(published, "{krake.dev/application: v1}", "{krake.dev/application: v1, krake.dev/mode: suspend, krake.dev/held-by: mallory}", 1)
	request := requestFor(signed(t, raw(t, suspended)), signed(t, raw(t, published)))
	request.UserInfo.Username = "anna"
	response := post(t, bodyOf(t, request))
	check.Equal(t, "operations", []string{"replace /metadata/annotations/krake.dev~1held-by"}, operations(t, response.Patch))
	var after corev1.ConfigMap
	check.Must(t, json.Unmarshal(patched(t, request.Object.Raw, response), &after))
	check.Equal(t, "held by", "anna", after.Annotations["krake.dev/held-by"])
}

// An undecodable request gets a 400, and never causes a panic.
func TestGarbage(t *testing.T) {
	good := raw(t, published)
	for _, c := range []struct {
		name           string
		object, stored []byte
	}{
		{"nothing", []byte(`null`), nil},
		{"a text", []byte(`"x"`), nil},
		{"another type of metadata", []byte(`{"metadata": {"labels": ["a"]}}`), nil},
		{"a time that is none", []byte(`{"metadata": {"deletionTimestamp": "yesterday"}}`), nil},
		{"a stored object of another type", good, []byte(`[]`)},
		{"very deep", []byte(`{"data": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			response := review(t, c.object, c.stored)
			if response.Allowed || response.Result.Code != http.StatusBadRequest || len(response.Patch) > 0 {
				t.Errorf("allowed is %v, %+v, patch %s", response.Allowed, response.Result, response.Patch)
			}
		})
	}
	for _, body := range []string{"", "{", "[]", "null", "{}", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`,
		`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"operation": "CREATE"}}`,
		`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"operation": "DELETE"}}`,
	} {
		t.Run("body "+body, func(t *testing.T) {
			if response := post(t, []byte(body)); response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("allowed is %v, %+v", response.Allowed, response.Result)
			}
		})
	}
}

// No Application makes admission take half of the memory of its Pod: what is computed is bounded
// before it is made, and a refusal names the field and the way out.
func TestNoApplicationTakesAdmissionDown(t *testing.T) {
	limit := hostile.LimitOf(t, "base/webhook/deployment.yaml")
	hook := &admission.Webhook{Handler: newTestHandler(everybody)}
	for _, shape := range hostile.Shapes() {
		t.Run(shape.Why, func(t *testing.T) {
			object, err := json.Marshal(shape.ConfigMap())
			check.Must(t, err)
			body := bodyOf(t, requestFor(object, nil))
			var answer *admissionv1.AdmissionResponse
			hostile.Measure(limit, func() { answer = answerTo(t, hook, body) }).Check(t)
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
