package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/test/check"
)

// asked has the rights that were reviewed: "anna: create configmaps demo/".
type asked struct {
	mu    sync.Mutex
	texts []string
}

func (a *asked) note(review *authorizationv1.SubjectAccessReview) {
	a.mu.Lock()
	defer a.mu.Unlock()
	about := review.Spec.ResourceAttributes
	a.texts = append(a.texts, review.Spec.User+": "+about.Verb+" "+about.Resource+" "+about.Namespace+"/"+about.Name)
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.texts)
}

var anna = authenticationv1.UserInfo{
	Username: "anna", UID: "u1", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
}

// ask sends a creation as the API server does.
func ask(t *testing.T, h *handler, user authenticationv1.UserInfo, object string) admission.Response {
	t.Helper()
	return h.Handle(t.Context(), requestOf(t, user, object))
}

func requestOf(t *testing.T, user authenticationv1.UserInfo, object string) admission.Request {
	t.Helper()
	request := requestFor(raw(t, object), nil)
	request.UserInfo = user
	return admission.Request{AdmissionRequest: *request}
}

const twoKinds = `
metadata: {name: app, annotations: {krake.dev/application: v1}}
data:
  spec.manifest: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: a}}
    ---
    {apiVersion: music.example.com/v1, kind: Opera, metadata: {name: tosca}}
`

// A user without the rights gets a 403 that names each of them and its place.
func TestForbidden(t *testing.T) {
	h := newTestHandler(func(review *authorizationv1.SubjectAccessReview) (bool, error) {
		about := review.Spec.ResourceAttributes
		return about.Resource == "configmaps" && about.Verb != "delete", nil
	})
	response := ask(t, h, anna, twoKinds)
	if response.Allowed || response.Result.Code != http.StatusForbidden || response.Result.Reason != metav1.StatusReasonForbidden || len(response.Patch) > 0 {
		t.Fatalf("the answer is %+v", response)
	}
	const want = `applications.krake.dev "app" is forbidden: an Application does nothing that its user may not do: ` +
		`data.spec.manifest[0]: user "anna" may not delete configmaps in namespace "demo"; ` +
		`data.spec.manifest[1]: user "anna" may not create, patch, delete services in namespace "demo"; ` +
		`data.spec.manifest[2]: user "anna" may not create, patch, delete operas.music.example.com in namespace "demo": have an administrator bind a role that has these rights`
	check.Equal(t, "message", want, response.Result.Message)
	check.Equal(t, "causes", []string{
		"FieldValueForbidden data.spec.manifest[0]", "FieldValueForbidden data.spec.manifest[1]", "FieldValueForbidden data.spec.manifest[2]",
	}, causesOf(&response.AdmissionResponse))
}

// In strict mode an Application belongs to its account, named or not. Its user must have the
// right to act as the account, and may then write objects that grant rights. The API server
// checks those against the account's own rights.
func TestRequiredAccount(t *testing.T) {
	const bare = `
metadata: {name: app, annotations: {krake.dev/application: v1}}
data: {spec.manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: []}"}
`
	const named = `
metadata: {name: app, annotations: {krake.dev/application: v1, krake.dev/service-account: builder}}
data: {spec.manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"}
`
	const refused = `applications.krake.dev "app" is forbidden: an Application does nothing that its user may not do: ` +
		`metadata.annotations[krake.dev/service-account]: user "anna" may not impersonate serviceaccounts "%s" in namespace "demo"%s: ` +
		`have an administrator bind a role that has these rights`
	for _, test := range []struct {
		why      string
		required bool
		object   string
		lacks    string
		want     string // empty: admitted
	}{
		{"who may act as the default account", true, bare, "", ""},
		{"who may not", true, bare, "krake-deployer",
			fmt.Sprintf(refused, "krake-deployer", " (an Application that names no account is carried out as this one)")},
		{"the default account is not asked for where another is named", true, named, "krake-deployer", ""},
		{"who may not act as the named one", true, named, "builder", fmt.Sprintf(refused, "builder", "")},
		{"nor without strict mode", false, named, "builder", fmt.Sprintf(refused, "builder", "")},
		{"without it the agent hands out no rights", false, bare, "",
			`Application "app" is invalid: data.spec.manifest[0].kind: Forbidden: an agent that creates a Role grants its own rights`},
	} {
		h := newTestHandler(func(review *authorizationv1.SubjectAccessReview) (bool, error) {
			about := review.Spec.ResourceAttributes
			return about.Verb != "impersonate" || about.Name != test.lacks, nil
		})
		h.accounts.Required = test.required
		response := ask(t, h, anna, test.object)
		switch {
		case response.Allowed != (test.want == ""):
			t.Errorf("%s: the answer is %+v", test.why, response)
		case test.want != "" && !strings.Contains(response.Result.Message, test.want):
			t.Errorf("%s: the message is %s\nwant %s", test.why, response.Result.Message, test.want)
		}
	}
}

// The API server reviews the user of the request, with all attributes from the request. It is
// not asked again while an answer is valid. A refusal is not cached.
func TestReviews(t *testing.T) {
	var asked asked
	allow := true
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	h := newTestHandler(func(review *authorizationv1.SubjectAccessReview) (bool, error) {
		asked.note(review)
		spec := review.Spec
		spec.ResourceAttributes = nil
		want := authorizationv1.SubjectAccessReviewSpec{
			User: "anna", UID: "u1", Groups: []string{"devs"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		}
		if spec.User == "anna" {
			check.Equal(t, "user", want, spec)
		}
		return allow, nil
	})
	h.authority = newAuthority(h.authority.reviews, clock)
	for _, step := range []struct {
		why   string
		do    func()
		user  authenticationv1.UserInfo
		asked int
	}{
		{"three verbs of each of three kinds, and whether the agent may create the two that are known", func() {}, anna, 9 + 2},
		{"they are known for a while", func() { clock.SetTime(clock.Now().Add(allowedFor - time.Second)) }, anna, 0},
		{"not of somebody else", func() {}, authenticationv1.UserInfo{Username: "bert"}, 9},
		{"not of the same name with other groups", func() {}, authenticationv1.UserInfo{Username: "bert", Groups: []string{"ops"}}, 9},
		{"and not for ever", func() { clock.SetTime(clock.Now().Add(2 * time.Second)) }, anna, 9 + 2},
		{"a refusal, after which nothing is computed or foretold", func() { clock.SetTime(clock.Now().Add(time.Minute)); allow = false }, anna, 9},
		{"is asked for again", func() {}, anna, 9},
	} {
		step.do()
		before := asked.count()
		check.Equal(t, step.why+": allowed", allow, ask(t, h, step.user, twoKinds).Allowed)
		check.Equal(t, step.why+": rights that were asked for", step.asked, asked.count()-before)
	}
}

// If the rights cannot be reviewed, the request is refused.
func TestReviewsThatFail(t *testing.T) {
	h := newTestHandler(func(*authorizationv1.SubjectAccessReview) (bool, error) { return true, errors.New("no answer") })
	response := ask(t, h, anna, twoKinds)
	if response.Allowed || response.Result.Code != http.StatusInternalServerError || len(response.Patch) > 0 {
		t.Errorf("the answer is %+v", response)
	}
}

// Nothing is computed for a user who may not create what the text names: not even mistakes are told.
func TestNothingIsComputedWithoutRights(t *testing.T) {
	h := newTestHandler(func(*authorizationv1.SubjectAccessReview) (bool, error) { return false, nil })
	response := ask(t, h, anna, `
metadata: {name: app, annotations: {krake.dev/application: v1, krake.dev/hooks: shutdown}}
data:
  spec.manifest: |
    {apiVersion: v1, kind: Service, metadata: {name: c}, spec: {ports: 80}}
    ---
    {apiVersion: example.com/v1, kind: Sevrice, metadata: {name: d}}
  spec.observer_schema: "not one"
`)
	check.Equal(t, "code", http.StatusForbidden, response.Result.Code)
	check.Equal(t, "causes", []string{"FieldValueForbidden data.spec.manifest[0]", "FieldValueForbidden data.spec.manifest[1]"}, causesOf(&response.AdmissionResponse))
	check.Equal(t, "warnings", []string{"data.spec.manifest[1]: there is no kind Sevrice in example.com/v1 here: it is created when its cluster has one"}, response.Warnings)
}

// A request that has ended is answered with an error, and changes nothing.
func TestARequestThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := newTestHandler(func(*authorizationv1.SubjectAccessReview) (bool, error) { cancel(); return true, nil })
	response := h.Handle(ctx, requestOf(t, anna, twoKinds))
	if response.Allowed || response.Result.Code != http.StatusInternalServerError || len(response.Patches) > 0 {
		t.Errorf("the answer is %+v", response)
	}
}

// All mistakes are reported at once, whichever check finds them.
func TestEverythingThatIsWrong(t *testing.T) {
	response := ask(t, newTestHandler(everybody), anna, `
metadata: {name: app, annotations: {krake.dev/application: v1, krake.dev/clutser: x}}
data:
  spec.manifest: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other, uid: x}}
    ---
    {apiVersion: v1, kind: Namespace, metadata: {name: b}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: c}, spec: {ports: 80}}
`)
	check.Equal(t, "causes", []string{
		"FieldValueForbidden metadata.annotations[krake.dev/clutser]", "FieldValueForbidden data.spec.manifest[0].metadata.uid",
		"FieldValueInvalid data.spec.manifest[2].spec.ports", "FieldValueForbidden data.spec.manifest[0].metadata.namespace",
		"FieldValueForbidden data.spec.manifest[1].kind",
	}, causesOf(&response.AdmissionResponse))
}

// An agent writes status, and no rights are reviewed.
func TestAgentThatMeetsTheWebhook(t *testing.T) {
	h := newTestHandler(func(*authorizationv1.SubjectAccessReview) (bool, error) { return false, nil })
	agent := authenticationv1.UserInfo{Username: "system:serviceaccount:krake-agents:local"}
	if response := ask(t, h, agent, twoKinds); response.Allowed || response.Result.Code != http.StatusUnprocessableEntity {
		t.Errorf("an agent creates an Application: %+v", response)
	}
	for object, want := range map[string]bool{
		strings.Replace(published, `{"state":"RUNNING"}`, `{"state":"FAILED"}`, 1): true,
		strings.Replace(published, manifestOne, manifestTwo, 1):                    false,
	} {
		request := requestFor(raw(t, object), raw(t, published))
		request.UserInfo = agent
		response := h.Handle(t.Context(), admission.Request{AdmissionRequest: *request})
		if response.Allowed != want || len(response.Patch) > 0 {
			t.Errorf("allowed is %v, want %v, with the patch %s", response.Allowed, want, response.Patch)
		}
	}
}

// What the agent may not create is a warning, once for each kind. Nothing is refused.
func TestWriterWithoutTheRight(t *testing.T) {
	const agent, account = "system:serviceaccount:krake-agents:local", "system:serviceaccount:demo:web"
	object := strings.Replace(twoKinds, "---\n", "---\n    {apiVersion: v1, kind: Service, metadata: {name: b}}\n    ---\n", 1)
	const unknown = "data.spec.manifest[3]: there is no kind Opera in music.example.com/v1 here: it is created when its cluster has one"
	for why, c := range map[string]struct {
		annotation  string
		err         error
		want        []string
		agentMayNot string
	}{
		"the agent":                    {"", nil, []string{unknown, `data.spec.manifest[1]: the agent may not create services in namespace "demo": have an administrator grant it`}, ""},
		"an account":                   {"krake.dev/service-account: web, ", nil, []string{unknown, `data.spec.manifest[1]: service account web may not create services in namespace "demo": have an administrator grant it`}, ""},
		"mode observe":                 {"krake.dev/mode: observe, ", nil, []string{unknown}, ""},
		"the agent of another cluster": {"krake.dev/cluster: other, ", nil, []string{unknown}, ""},
		"no answer":                    {"", errors.New("boom"), []string{unknown}, ""},
		"an agent that may not read": {"krake.dev/service-account: web, ", nil, []string{
			unknown, `data.spec.manifest[1]: the agent may not list services in namespace "demo": have an administrator grant it, by a ClusterRole with the label krake.dev/aggregate-to-agent=true`,
		}, "list"},
		"an agent that may not act as the account": {"krake.dev/service-account: web, ", nil, []string{
			unknown, `data.spec.manifest[1]: the agent may not impersonate-on:serviceaccount:create services in namespace "demo": have an administrator grant it, by a ClusterRole with the label krake.dev/aggregate-to-agent=true`,
		}, actAsToCreate},
	} {
		t.Run(why, func(t *testing.T) {
			h := newTestHandler(func(review *authorizationv1.SubjectAccessReview) (bool, error) {
				asked := review.Spec.ResourceAttributes
				if (review.Spec.User == agent || review.Spec.User == account) && c.err != nil {
					return false, c.err
				}
				isDenied := review.Spec.User == account && c.agentMayNot == "" || review.Spec.User == agent && (asked.Verb == "create" || asked.Verb == c.agentMayNot)
				return !isDenied || asked.Resource != "services", nil
			})
			response := ask(t, h, anna, strings.Replace(object, "krake.dev/application: v1", c.annotation+"krake.dev/application: v1", 1))
			if !response.Allowed {
				t.Fatalf("it is refused: %+v", response.Result)
			}
			check.Equal(t, "warnings", c.want, response.Warnings)
		})
	}
}

// Of a Secret whose values have a source, the agent needs no right to list the kind. Without an account, the annotation is refused.
func TestRightsOnSecretsWithSources(t *testing.T) {
	const agent = "system:serviceaccount:krake-agents:local"
	var asked []string
	h := newTestHandler(func(review *authorizationv1.SubjectAccessReview) (bool, error) {
		if review.Spec.User == agent {
			asked = append(asked, review.Spec.ResourceAttributes.Verb+" "+review.Spec.ResourceAttributes.Resource)
		}
		return true, nil
	})
	object := strings.Replace(twoKinds, "---\n", "---\n    {apiVersion: v1, kind: Secret, metadata: {name: vault}}\n    ---\n", 1)
	with := func(annotations string) string {
		return strings.Replace(object, "krake.dev/application: v1", annotations+", krake.dev/application: v1", 1)
	}
	if response := ask(t, h, anna, with("krake.dev/service-account: web, krake.dev/values-from: vault=values")); !response.Allowed {
		t.Fatalf("it is refused: %+v", response.Result)
	}
	slices.Sort(asked)
	if !slices.Contains(asked, "get secrets") || !slices.Contains(asked, actAsToCreate+" secrets") || slices.Contains(asked, "list secrets") {
		t.Errorf("the rights of the agent that were asked for: %q", asked)
	}
	response := ask(t, h, anna, with("krake.dev/values-from: vault=values"))
	if response.Allowed || !strings.Contains(response.Result.Message, "only a service account reads the values") {
		t.Errorf("without an account: %+v", response.Result)
	}
}
