package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB

	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, _ ...any) {
	r.said = format
	panic(r)
}

func TestEventuallyFailsWithTheLastState(t *testing.T) {
	fails := &recorder{TB: t}
	defer func() {
		if recover() == nil || fails.said == "" {
			t.Error("a complaint that does not end fails nothing")
		}
	}()
	EventuallyWithin(fails, time.Millisecond, func() string { return "the colour is red" })
}

func TestWaitNamesWhatItWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Wait(ctx, "the colour is green", func() (bool, error) { return false, nil })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the colour is green") {
		t.Errorf("the error is %v", err)
	}
}

func TestFieldOfAPathThatLeadsNowhereIsNil(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}}
	if got := Field(object, "spec", "ports", 0, "port"); got != int64(80) {
		t.Errorf("the port is %v", got)
	}
	for _, path := range [][]any{{"spec", "ports", 1, "port"}, {"spec", "ports", "port"}, {"status"}, {"spec", "ports", 0, "port", "x"}} {
		if got := Field(object, path...); got != nil {
			t.Errorf("%v is %v", path, got)
		}
	}
	if got := Field(nil, "spec"); got != nil {
		t.Errorf("a field of nothing is %v", got)
	}
}

func TestRequestIsWhatItsAuditEventSays(t *testing.T) {
	r, err := DecodeRequest([]byte(`{"stage": "ResponseComplete", "verb": "create", "user": {"username": "system:serviceaccount:krake-agents:east",
		"extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]}}, "objectRef": {"resource": "pods", "subresource": "status", "namespace": "a"},
		"requestObject": {"metadata": {"name": "b"}}, "responseStatus": {"code": 403, "message": "because it is being terminated"}}`))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r.Name() != "b", r.Resource() != "pods/status", !r.IsAgents(), !r.IsWrite(), r.IsAccepted(), r.IsForbidden(), r.IsCutOff():
		t.Errorf("%s is misread", r)
	case len(Select([]Request{r}, By(AgentUser("east")), In("a"), ByCredential("JTI=1"))) != 1, len(Select([]Request{r}, In("b"))) != 0:
		t.Errorf("%s is not selected", r)
	}
	if _, err := DecodeRequest([]byte(`{"verb": 1}`)); err == nil {
		t.Error("a line that is no event is accepted")
	}
}

func TestOnlyEventsOfTheWordsAreDecoded(t *testing.T) {
	for line, want := range map[string]bool{
		`{"stage": "ResponseComplete", "verb": "get", "objectRef": {"namespace": "demo"}}`:   true,
		`{"stage": "ResponseStarted", "verb": "get", "objectRef": {"namespace": "demo"}}`:    false,
		`{"stage": "ResponseStarted", "verb": "watch", "objectRef": {"namespace": "demo"}}`:  true,
		`{"stage": "ResponseComplete", "verb": "watch", "objectRef": {"namespace": "demo"}}`: false,
		`{"stage": "ResponseComplete", "verb": "get", "objectRef": {"namespace": "else"}}`:   false,
		`{"else"`: false,
	} {
		if r, err := decodeRequest([]byte(line), []string{`"demo"`}, nil); err != nil || (r != nil) != want {
			t.Errorf("%s: %v, %v", line, r, err)
		}
	}
	if _, err := decodeRequest([]byte(`{"demo"`), []string{"other", "demo"}, nil); err == nil {
		t.Error("half a line is a request")
	}
}

func TestApplicationIsWhatAUserWrites(t *testing.T) {
	cm := Application("team", "web", "metadata: {name: NAME}", Schema("name: NAME"), On("east"), Annotation("mode", "observe"))
	want := map[string]string{application.ManifestKey: "metadata: {name: web}", application.ObserverSchemaKey: "name: web"}
	for key, value := range want {
		if cm.Data[key] != value {
			t.Errorf("%s is %q, want %q", key, cm.Data[key], value)
		}
	}
	if cm.Annotations[application.ClusterAnnotation] != "east" || cm.Annotations[application.FormatAnnotation] != application.Format {
		t.Errorf("annotations %v", cm.Annotations)
	}
	if !strings.Contains(YAML(t, cm), "krake.dev/mode: observe") {
		t.Error("an annotation is missing in its YAML")
	}
	if empty := Application("team", "web", "", Schema("")); len(empty.Data) != 0 {
		t.Errorf("data %v", empty.Data)
	}
}

type exit int

func (e exit) Run() int { return int(e) }

func TestSuiteStopsWhateverFails(t *testing.T) {
	broken := errors.New("broken")
	for name, each := range map[string]struct {
		start, check error
		tests        exit
		code         int
		ok           bool
	}{
		"nothing":   {ok: true},
		"the start": {start: broken, code: 1},
		"a test":    {tests: 1, code: 1, ok: true},
		"the check": {check: broken},
	} {
		t.Run(name, func(t *testing.T) {
			stopped := false
			suite := Suite{
				Name:  "x",
				Start: func(context.Context) error { return each.start },
				Check: func(context.Context) error { return each.check },
				Stop:  func() error { stopped = true; return nil },
			}
			code, err := suite.run(t.Context(), each.tests)
			if code != each.code || (err == nil) != each.ok || !stopped {
				t.Errorf("code %d, error %v, stopped %t", code, err, stopped)
			}
		})
	}
}

// A mark is taken when a test has read the result of a request. The API server may log
// that request after the mark.
func TestMarkPrecedesWhatIsReceivedAfterIt(t *testing.T) {
	received := time.Date(2026, 7, 1, 12, 0, 0, 1000, time.UTC)
	line := fmt.Appendf(nil, `{"stage": "ResponseComplete", "verb": "patch", "requestReceivedTimestamp": %q}`, received.Format("2006-01-02T15:04:05.000000Z07:00"))
	for _, test := range []struct {
		name  string
		begin time.Time
		found bool
	}{
		{"of the beginning", time.Time{}, true},
		{"before the request", received.Add(-time.Microsecond), true},
		{"of the same microsecond", received, true},
		{"after the request was received", received.Add(time.Microsecond), false},
	} {
		r, err := decodeRequest(line, nil, []Filter{Mark{begin: test.begin}.precedes})
		if err != nil || (r != nil) != test.found {
			t.Errorf("a mark %s: %v, %v", test.name, r, err)
		}
	}
}
