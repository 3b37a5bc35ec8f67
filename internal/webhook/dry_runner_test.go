package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic/fake"
	fakeauthorization "k8s.io/client-go/kubernetes/typed/authorization/v1/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// newTestDryRunner tries on an API server that answers as accept does, and returns what was tried.
func newTestDryRunner(t *testing.T, timeout time.Duration, accept func(*unstructured.Unstructured) error) (*dryRunner, *[]string) {
	t.Helper()
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	var tried []string
	var mutex sync.Mutex
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(clienttesting.CreateActionImpl)
		object, _ := create.GetObject().(*unstructured.Unstructured)
		mutex.Lock()
		tried = append(tried, strings.TrimSpace(fmt.Sprintf("%s %s/%s %v", create.Resource.Resource, object.GetNamespace(), object.GetName(), create.CreateOptions.DryRun)))
		mutex.Unlock()
		return true, object, accept(object)
	})
	reviewer := &fakeauthorization.FakeAuthorizationV1{Fake: &clienttesting.Fake{}}
	reviewer.AddReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review, _ := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = review.Spec.ResourceAttributes.Resource != "operas"
		return true, review, nil
	})
	return newDryRunnerWith(client, reviewer.SelfSubjectAccessReviews(), timeout), &tried
}

func TestMistakesIn(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for why, c := range map[string]struct {
		err     error
		want    []string
		untried bool
	}{
		"accepted":                 {},
		"it exists":                {err: apierrors.NewAlreadyExists(pods, "a")},
		"its namespace is to come": {err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")},
		"mistakes": {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{
			field.Required(field.NewPath("spec", "containers"), ""), field.Invalid(field.NewPath("metadata", "labels"), "a b", "no label"),
		}), want: []string{
			"data.spec.manifest[3].spec.containers: the API server refuses it: Required value",
			"data.spec.manifest[3].metadata.labels: the API server refuses it: Invalid value: no label",
		}},
		"a policy finds it invalid": {err: &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonInvalid, Code: 422, Message: "the policy of others", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "the policy of others"}}},
		}}},
		"a quota forbids it":            {err: apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: small"))},
		"malformed":                     {err: apierrors.NewBadRequest("cannot unmarshal")},
		"another webhook tries nothing": {err: apierrors.NewBadRequest(`admission webhook "other" does not support dry run`)},
		"overloaded":                    {err: apierrors.NewTooManyRequests("later", 1), untried: true},
		"an internal error":             {err: apierrors.NewInternalError(errors.New("boom")), untried: true},
		"no answer":                     {err: context.DeadlineExceeded, untried: true},
	} {
		t.Run(why, func(t *testing.T) {
			mistakes, tried := mistakesIn(3, c.err)
			check.Equal(t, "mistakes", c.want, mistakes)
			check.Equal(t, "tried", !c.untried, tried)
		})
	}
}

// Objects of which the API server does not answer in time are counted.
func TestTrialInTime(t *testing.T) {
	var all []candidate
	for i := range 3 {
		object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": fmt.Sprint("pod-", i)}}
		c := candidate{index: i, object: object}
		c.Resource, c.Namespace = schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "demo"
		all = append(all, c)
	}
	tr, tried := newTestDryRunner(t, time.Minute, func(object *unstructured.Unstructured) error {
		if object.GetName() == "pod-1" {
			return context.DeadlineExceeded
		}
		return refusalOf(object.GetName())
	})
	const untried = " of 3 new objects were not tried with a dry run: the API server did not answer within 1m0s, or too many are tried now"
	check.Equal(t, "warnings", []string{
		"data.spec.manifest[0].spec: the API server refuses it: Required value: pod-0",
		"data.spec.manifest[2].spec: the API server refuses it: Required value: pod-2",
		"data.spec.manifest: 1" + untried,
	}, tr.warnings(t.Context(), all))
	check.Equal(t, "tried", 3, len(*tried))

	*tried = nil
	check.Must(t, tr.atOnce.Acquire(t.Context(), trialsAtOnce)) // other admissions try at this time
	check.Equal(t, "others try", []string{"data.spec.manifest: 3" + untried}, tr.warnings(t.Context(), all))
	tr.atOnce.Release(trialsAtOnce)
	tr.budget = rate.NewLimiter(0, 0) // or have tried
	check.Equal(t, "others have tried", []string{"data.spec.manifest: 3" + untried}, tr.warnings(t.Context(), all))
	check.Empty(t, "tried", *tried)
}

func refusalOf(text string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Required(field.NewPath("spec"), text)})
}

// The webhook tries only the kinds that it may try. It asks once for each.
func TestTrialOfOtherKinds(t *testing.T) {
	var opera candidate
	opera.object, opera.Resource = map[string]any{}, schema.GroupVersionResource{Group: "music.example.com", Version: "v1", Resource: "operas"}
	tr, tried := newTestDryRunner(t, time.Minute, func(*unstructured.Unstructured) error { return errors.New("boom") })
	for range 2 {
		check.Empty(t, "warnings", tr.warnings(t.Context(), []candidate{opera}))
	}
	check.Empty(t, "tried", *tried)
	check.Equal(t, "remembered", 1, len(tr.rights.Keys()))
}

func TestNoTrial(t *testing.T) {
	tr, err := newDryRunner(&rest.Config{}, 0)
	if tr != nil || err != nil {
		t.Errorf("%v, %v", tr, err)
	}
}

// Only objects that this Application would create here now are tried.
func TestWhatIsTried(t *testing.T) {
	const two, service = "configmaps demo/a [All]", "services demo/a [All]"
	for why, c := range map[string]struct {
		annotation string
		held       bool   // the Service
		lacks      string // what the agent may not create
		user       bool   // may do nothing
		want       []string
	}{
		"all are new":                  {want: []string{two, service}},
		"the agent has one":            {held: true, want: []string{two}},
		"it adopts objects":            {annotation: `krake.dev/adopt: "true", `},
		"a right of the agent lacks":   {lacks: "services", want: []string{two}},
		"the user has no rights":       {user: true},
		"mode observe":                 {annotation: "krake.dev/mode: observe, "},
		"the agent of another cluster": {annotation: "krake.dev/cluster: other, "},
	} {
		t.Run(why, func(t *testing.T) {
			h := newTestHandler(func(review *authorizationv1.SubjectAccessReview) (bool, error) {
				if strings.HasPrefix(review.Spec.User, "system:serviceaccount:krake-agents:") {
					return review.Spec.ResourceAttributes.Resource != c.lacks, nil
				}
				return !c.user, nil
			})
			var tried *[]string
			h.dryRunner, tried = newTestDryRunner(t, time.Minute, func(*unstructured.Unstructured) error { return refusalOf("no") })
			request := requestOf(t, anna, strings.Replace(twoKinds, "annotations: {", "annotations: {"+c.annotation, 1))
			if c.held {
				request.Operation = admissionv1.Update
				request.OldObject.Raw = raw(t, strings.Replace(twoKinds, "data:\n", "data:\n  inventory.local: '[{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"namespace\":\"demo\",\"name\":\"a\"}]'\n", 1))
			}
			response := h.Handle(t.Context(), request)
			check.Equal(t, "admitted", !c.user, response.Allowed)
			slices.Sort(*tried) // they are tried at the same time
			check.Equal(t, "tried", c.want, *tried)
			refused := strings.Count(strings.Join(response.Warnings, "\n"), "the API server refuses it: Required value: no")
			check.Equal(t, "warnings", len(c.want), refused)
		})
	}
}
