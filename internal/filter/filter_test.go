package filter

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// The tokens of a collector that may get /metrics, and of a user without rights.
const (
	collector = "token-of-the-collector"
	stranger  = "token-of-the-stranger"
)

// answers are an API server's: whose a token is, and who may do what.
type answers struct {
	mu     sync.Mutex
	users  map[string]authenticationv1.UserInfo
	rights map[string]bool // by user, verb and path
	fails  string          // the resource whose reviews fail
	asked  []string
}

func newAnswers() *answers {
	return &answers{
		users: map[string]authenticationv1.UserInfo{
			collector: {
				Username: "collector", UID: "u1", Groups: []string{"monitoring"},
				Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
			},
			stranger: {Username: "stranger"},
		},
		rights: map[string]bool{"collector get /metrics": true},
	}
}

// ServeHTTP implements http.Handler.
func (a *answers) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	if resource == a.fails {
		http.Error(w, "the API server has a problem", http.StatusInternalServerError)
		return
	}
	var err error
	w.Header().Set("Content-Type", "application/json")
	switch resource {
	case "tokenreviews":
		err = a.reviewToken(w, request)
	case "subjectaccessreviews":
		err = a.reviewAccess(w, request)
	default:
		err = fmt.Errorf("there is no %s", resource)
	}
	if err != nil {
		panic(err)
	}
}

func (a *answers) reviewToken(w http.ResponseWriter, request *http.Request) error {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		return err
	}
	a.asked = append(a.asked, "token")
	review.Status.User, review.Status.Authenticated = a.users[review.Spec.Token], a.users[review.Spec.Token].Username != ""
	if !review.Status.Authenticated {
		review.Status.Error = "invalid bearer token"
	}
	return json.NewEncoder(w).Encode(review)
}

func (a *answers) reviewAccess(w http.ResponseWriter, request *http.Request) error {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		return err
	}
	about := review.Spec.NonResourceAttributes
	question := review.Spec.User + " " + about.Verb + " " + about.Path
	a.asked = append(a.asked, question)
	review.Status.Allowed = a.rights[question]
	return json.NewEncoder(w).Encode(review)
}

// questions returns what was asked since the last call.
func (a *answers) questions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

// world is a handler behind the filter.
type world struct {
	*answers

	server   *httptest.Server
	clock    *clocktesting.FakePassiveClock
	reviewer *reviewer
	handler  http.Handler
	log      strings.Builder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{answers: newAnswers(), clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	w.server = httptest.NewServer(w.answers)
	t.Cleanup(w.server.Close)
	client, err := kubernetes.NewForConfig(w.config())
	check.Must(t, err)
	w.reviewer = newReviewer(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews(), w.clock)
	logger := funcr.New(func(prefix, arguments string) { fmt.Fprintln(&w.log, prefix, arguments) }, funcr.Options{Verbosity: 9})
	w.handler, err = w.reviewer.filter(logger, metrics)
	check.Must(t, err)
	return w
}

// config has a client send what [answers] reads.
func (w *world) config() *rest.Config {
	return &rest.Config{Host: w.server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
}

var metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the metrics") })

// request sends a request with an Authorization header, if it is not empty.
func (w *world) request(t *testing.T, method, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, w.handler, method, authorization)
}

func send(t *testing.T, handler http.Handler, method, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "/metrics", nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// Only a request with a token of a user who has the right is served, and the right is that of
// its method.
func TestOnlyAllowedClientsReadTheMetrics(t *testing.T) {
	tokens, both := []string{"token"}, []string{"token", "collector get /metrics"}
	cases := []struct {
		why, method, authorization string
		code                       int
		text                       string
		asked                      []string
	}{
		{"no token", "GET", "", 401, "Unauthorized\n", nil},
		{"no bearer token", "GET", "Basic " + collector, 401, "Unauthorized\n", nil},
		{"an empty token", "GET", "Bearer ", 401, "Unauthorized\n", nil},
		{"two tokens", "GET", "Bearer " + collector + " " + stranger, 401, "Unauthorized\n", nil},
		{"a wrong token", "GET", "Bearer wrong", 401, "Unauthorized\n", tokens},
		{"a token without the right", "GET", "Bearer " + stranger, 403, "Authorization denied for user stranger\n", []string{"token", "stranger get /metrics"}},
		{"with the right", "GET", "Bearer " + collector, 200, "the metrics", both},
		{"the scheme has no case", "GET", "bearer " + collector, 200, "the metrics", both},
		{"HEAD is another right", "HEAD", "Bearer " + collector, 403, "Authorization denied for user collector\n", []string{"token", "collector head /metrics"}},
		{"and so is POST", "POST", "Bearer " + collector, 403, "Authorization denied for user collector\n", []string{"token", "collector post /metrics"}},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			w := newWorld(t)
			answer := w.request(t, c.method, c.authorization)
			check.Equal(t, "code", c.code, answer.Code)
			check.Equal(t, "text", c.text, answer.Body.String())
			check.Equal(t, "questions", c.asked, w.questions())
		})
	}
}

// The rights are those of the user as the API server knows it, with groups and all.
func TestTheWholeUserIsReviewed(t *testing.T) {
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "collector", UID: "u1", Groups: []string{"monitoring"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	}
	check.Equal(t, "review", want, specOf(newAnswers().users[collector], access{collector, "get", "/metrics"}))
}

// While the API server does not answer, no client is served.
func TestNothingIsServedWithoutTheAPIServer(t *testing.T) {
	cases := []struct {
		why   string
		fault func(w *world)
		want  string
	}{
		{"it is away", func(w *world) { w.server.Close() }, "Authentication failed\n"},
		{"it reviews no tokens", func(w *world) { w.fails = "tokenreviews" }, "Authentication failed\n"},
		{"it reviews no rights", func(w *world) { w.fails = "subjectaccessreviews" }, "Authorization for user collector failed\n"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			w := newWorld(t)
			c.fault(w)
			answer := w.request(t, http.MethodGet, "Bearer "+collector)
			check.Equal(t, "code", http.StatusInternalServerError, answer.Code)
			check.Equal(t, "text", c.want, answer.Body.String())
			if strings.Count(w.log.String(), "\n") != 1 {
				t.Errorf("logged %q, want one line", w.log.String())
			}
		})
	}
}

// What is allowed is asked once within a minute; a refusal is asked again.
func TestAnswersAreCachedForAMinute(t *testing.T) {
	w := newWorld(t)
	both := []string{"token", "collector get /metrics"}
	steps := []struct {
		why    string
		do     func()
		method string
		token  string
		code   int
		asked  []string
	}{
		{"a first request", func() {}, "GET", collector, 200, both},
		{"a second", func() {}, "GET", collector, 200, nil},
		{"not by another method", func() {}, "HEAD", collector, 403, []string{"token", "collector head /metrics"}},
		{"nor with another token", func() {}, "GET", collector + "x", 401, []string{"token"}},
		{"just before the minute ends", func() { w.advance(allowedFor - time.Second) }, "GET", collector, 200, nil},
		{"a use does not prolong it", func() { w.advance(2 * time.Second) }, "GET", collector, 200, both},
		{"a right that is revoked", func() { delete(w.rights, "collector get /metrics"); w.advance(2 * allowedFor) }, "GET", collector, 403, both},
		{"is asked for again", func() {}, "GET", collector, 403, both},
		{"and granted at once", func() { w.rights["collector get /metrics"] = true }, "GET", collector, 200, both},
		{"a token that is revoked", func() { delete(w.users, collector); w.advance(2 * allowedFor) }, "GET", collector, 401, []string{"token"}},
	}
	for _, step := range steps {
		step.do()
		check.Equal(t, step.why+": code", step.code, w.request(t, step.method, "Bearer "+step.token).Code)
		check.Equal(t, step.why+": questions", step.asked, w.questions())
	}
}

func (w *world) advance(by time.Duration) { w.clock.SetTime(w.clock.Now().Add(by)) }

// Wrong tokens take no place in the cache, and right ones only a bounded number.
func TestAFloodOfTokensDoesNotGrowMemory(t *testing.T) {
	w := newWorld(t)
	w.request(t, http.MethodGet, "Bearer "+collector)
	for i := range 2 * maxAllowed {
		w.request(t, http.MethodGet, fmt.Sprintf("Bearer wrong-%d", i))
	}
	check.Equal(t, "cached answers after wrong tokens", 1, len(w.reviewer.allowed.Keys()))
	w.questions()
	check.Equal(t, "code for the collector", http.StatusOK, w.request(t, http.MethodGet, "Bearer "+collector).Code)
	check.Equal(t, "questions about the collector", nil, w.questions())

	for i := range 2 * maxAllowed {
		token := fmt.Sprintf("right-%d", i)
		w.users[token] = w.users[collector]
		check.Equal(t, "code", http.StatusOK, w.request(t, http.MethodGet, "Bearer "+token).Code)
	}
	check.Equal(t, "cached answers after right tokens", maxAllowed, len(w.reviewer.allowed.Keys()))
}

// Neither log nor answer nor cache has a token, whatever happens to it.
func TestTokensAreNeitherLoggedNorStored(t *testing.T) {
	w := newWorld(t)
	tokens := slices.Collect(maps.Keys(w.users))
	seen := ""
	for _, fault := range []string{"", "tokenreviews", "subjectaccessreviews"} {
		w.fails = fault
		w.advance(2 * allowedFor)
		for _, token := range append(tokens, "wrong-token") {
			seen += w.request(t, http.MethodGet, "Bearer "+token).Body.String()
		}
	}
	w.server.Close()
	seen += w.request(t, http.MethodGet, "Bearer wrong-token").Body.String()
	seen += w.log.String() + fmt.Sprintf("%s %q", w.reviewer.allowed.Keys(), w.reviewer.allowed.Keys())
	for _, token := range append(tokens, "wrong-token") {
		if strings.Contains(seen, token) {
			t.Errorf("%s is in %s", token, seen)
		}
	}
}

// The provider is what the server of the metrics asks for.
func TestByAPIServer(t *testing.T) {
	w := newWorld(t)
	filter, err := ByAPIServer(w.config(), w.server.Client())
	check.Must(t, err)
	handler, err := filter(logr.Discard(), metrics)
	check.Must(t, err)
	check.Equal(t, "code with the right", http.StatusOK, send(t, handler, http.MethodGet, "Bearer "+collector).Code)
	check.Equal(t, "code without it", http.StatusForbidden, send(t, handler, http.MethodGet, "Bearer "+stranger).Code)
	if _, err := ByAPIServer(&rest.Config{Host: "://"}, w.server.Client()); err == nil {
		t.Error("an address that is none is no error")
	}
}
