package guard

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// answered is what a client and the metrics learn of a request.
type answered struct {
	Result   result
	Allowed  bool
	Warnings []string
	Code     int32
	Message  string
	Reports  []string
}

func (w *world) ask(ctx context.Context, request admission.Request) answered {
	what, response := w.answer(ctx, request)
	got := answered{Result: what, Allowed: response.Allowed, Warnings: response.Warnings, Reports: w.reports}
	if !response.Allowed && response.Result != nil {
		got.Code, got.Message = response.Result.Code, response.Result.Message
	}
	return got
}

var (
	untold   = answered{Result: quiet, Allowed: true}
	unjudged = answered{Result: unknown, Allowed: true}
	unowned  = answered{Result: foreign, Allowed: true}
)

func warnedOf(texts ...string) answered {
	return answered{Result: warned, Allowed: true, Warnings: texts}
}

func deniedWith(text string) answered {
	return answered{Result: denied, Code: http.StatusForbidden, Message: text}
}

func bypassedWith(report string, texts ...string) answered {
	return answered{Result: bypassed, Allowed: true, Warnings: texts, Reports: []string{report}}
}

func by(request admission.Request, user string, groups ...string) admission.Request {
	request.UserInfo.Username, request.UserInfo.Groups = user, groups
	return request
}

func dry(request admission.Request) admission.Request {
	isDry := true
	request.DryRun = &isDry
	return request
}

// scenario is a request in a world that is prepared for it.
type scenario struct {
	name string
	make func(t *testing.T, w *world) admission.Request
	want answered
}

func (s scenario) run(t *testing.T) {
	t.Helper()
	t.Run(s.name, func(t *testing.T) {
		w := newWorld(t, deployment)
		request := s.make(t, w)
		check.Equal(t, "answer", s.want, w.ask(t.Context(), request))
	})
}

// sevenAfter is the change to seven replicas, in a world that is changed before.
func sevenAfter(change func(t *testing.T, w *world)) func(*testing.T, *world) admission.Request {
	return func(t *testing.T, w *world) admission.Request {
		t.Helper()
		change(t, w)
		return w.seven(t)
	}
}

// sevenWith is the change to seven replicas, by another request.
func sevenWith(change func(*admission.Request)) func(*testing.T, *world) admission.Request {
	return func(t *testing.T, w *world) admission.Request {
		t.Helper()
		request := w.seven(t)
		change(&request)
		return request
	}
}

func (s scenario) denying() scenario {
	warning := s.make
	s.make = func(t *testing.T, w *world) admission.Request {
		w.app.Settings.Guard = application.GuardDeny
		return warning(t, w)
	}
	return s
}

func TestAUserIsWarnedOfWhatTheAgentReverts(t *testing.T) {
	for _, s := range []scenario{
		{"a change", func(t *testing.T, w *world) admission.Request { return w.seven(t) }, warnedOf(replicasText)},
		{"a private value is not shown", func(t *testing.T, w *world) admission.Request {
			after := runtime.DeepCopyJSON(w.live)
			after["spec"].(map[string]any)["template"] = map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"name": "web", "image": "nginx:1.27", "env": []any{map[string]any{"name": "A", "value": "x"}}},
			}}}
			return w.update(t, after)
		}, warnedOf("spec.template.spec.containers[web].env[A].value is managed by Application shop/web and will be set back. " +
			"Change it there, or hold it first: kubectl krake hold -n shop web deployment/web")},
		{"nothing", func(t *testing.T, w *world) admission.Request { return w.update(t, w.live) }, untold},
		{"a deletion in mode suspend", func(t *testing.T, w *world) admission.Request {
			w.app.Settings.Mode = application.Suspend
			return w.remove(t)
		}, untold},
		{"a hold longer than the agent allows", func(t *testing.T, w *world) admission.Request {
			w.MaxHold = 0
			w.live = w.edited(t, noon.Add(time.Hour).Format(time.RFC3339), "metadata", "annotations", application.HoldUntilAnnotation)
			return w.seven(t)
		}, warnedOf(replicasText)},
		{"a deletion", func(t *testing.T, w *world) admission.Request { return w.remove(t) }, warnedOf(deletionText)},
		{"an Application in a namespace of another name", func(t *testing.T, w *world) admission.Request {
			w.home = "prod"
			w.create(t)
			return w.seven(t)
		}, warnedOf(replicasText)},
		{"no guard is wanted", sevenAfter(func(_ *testing.T, w *world) { w.app.Settings.Guard = application.GuardOff }), answered{Result: off, Allowed: true}},
		{"break glass has no meaning where nothing is refused", func(t *testing.T, w *world) admission.Request { return by(w.seven(t), "carol") }, warnedOf(replicasText)},
	} {
		s.run(t)
	}
}

func TestADenialIsA403UnlessAUserBreaksTheGlass(t *testing.T) {
	const changed, deleted = "GlassBroken apps/v1 Deployment shop/web [spec.replicas] carol", "GlassBroken apps/v1 Deployment shop/web [] carol"
	for _, s := range []scenario{
		{"a change", func(t *testing.T, w *world) admission.Request { return w.seven(t) }, deniedWith(replicasText)},
		{"a deletion", func(t *testing.T, w *world) admission.Request { return w.remove(t) }, deniedWith(deletionText)},
		{"a dry run", func(t *testing.T, w *world) admission.Request { return dry(w.seven(t)) }, deniedWith(replicasText)},
		{"what the agent does not revert", func(t *testing.T, w *world) admission.Request {
			return w.update(t, w.edited(t, true, "spec", "paused"))
		}, untold},
		{"two fields", func(t *testing.T, w *world) admission.Request {
			after := w.edited(t, int64(7), "spec", "replicas")
			check.Must(t, unstructured.SetNestedSlice(after, nil, "spec", "template", "spec", "containers"))
			return w.update(t, after)
		}, deniedWith("spec.replicas is managed by Application shop/web and will be set back to 3. " +
			"spec.template.spec.containers is managed by Application shop/web and will get back what was removed. " +
			"Change it there, or hold it first: kubectl krake hold -n shop web deployment/web")},
		{"a user breaks the glass", func(t *testing.T, w *world) admission.Request { return by(w.seven(t), "carol") }, bypassedWith(changed, replicasText)},
		{"for a deletion", func(t *testing.T, w *world) admission.Request { return by(w.remove(t), "carol") }, bypassedWith(deleted, deletionText)},
		{"a group breaks the glass", func(t *testing.T, w *world) admission.Request { return by(w.seven(t), "dora", "dev", "oncall") },
			bypassedWith(strings.Replace(changed, "carol", "dora", 1), replicasText)},
		{"a dry run is not reported", func(t *testing.T, w *world) admission.Request { return dry(by(w.seven(t), "carol")) },
			answered{Result: bypassed, Allowed: true, Warnings: []string{replicasText}}},
		{"a request that says nothing of a dry run is reported", func(t *testing.T, w *world) admission.Request {
			request := by(w.seven(t), "carol")
			request.DryRun = nil
			return request
		}, bypassedWith(changed, replicasText)},
		{"a group of a user's name", func(t *testing.T, w *world) admission.Request { return by(w.seven(t), "dora", "carol") }, deniedWith(replicasText)},
		{"a user of a group's name", func(t *testing.T, w *world) admission.Request { return by(w.seven(t), "oncall") }, deniedWith(replicasText)},
		{"the Application's own account", func(t *testing.T, w *world) admission.Request {
			w.writer = "system:serviceaccount:shop:krake-deployer"
			return by(w.seven(t), w.writer)
		}, untold},
		{"another account", func(t *testing.T, w *world) admission.Request {
			w.writer = "system:serviceaccount:shop:krake-deployer"
			return by(w.seven(t), "system:serviceaccount:shop:default")
		}, deniedWith(replicasText)},
	} {
		s.denying().run(t)
	}
}

// The agent reverts what slips through, and a guard with a problem stops no work.
func TestWhatCannotBeJudgedPasses(t *testing.T) {
	for _, s := range []scenario{
		{"an unknown Application", sevenAfter(func(_ *testing.T, w *world) { w.app.Name = "other" }), unjudged},
		{"an Application that cannot be read", sevenAfter(func(_ *testing.T, w *world) { w.getFails = errSilent }), unjudged},
		{"an object without marks", sevenAfter(func(_ *testing.T, w *world) { unstructured.RemoveNestedField(w.live, "metadata", "annotations") }), unowned},
		{"a copy of an object with its marks", sevenAfter(func(t *testing.T, w *world) { w.live = w.edited(t, "copy", "metadata", "name") }), unowned},
		{"an object that is not in the manifest", func(t *testing.T, w *world) admission.Request {
			w.app.Spec = newApplication(t, strings.Replace(deployment, "name: web}, spec", "name: other}, spec", 1)).Spec
			return w.remove(t)
		}, unjudged},
		{"a namespace that is not the Application's", sevenAfter(func(_ *testing.T, w *world) { w.home = "prod" }), unjudged},
		{"another version of the API", sevenAfter(func(t *testing.T, w *world) { w.live = w.edited(t, "apps/v1beta2", "apiVersion") }), unjudged},
		{"an Application that has yet to arrive on this cluster", sevenAfter(func(_ *testing.T, w *world) { w.app.Status.Cluster = "edge" }), unjudged},
		{"an Application that was moved to another cluster", sevenAfter(func(_ *testing.T, w *world) { w.app.Cluster, w.app.Status.Cluster = "edge", "edge" }), unjudged},
		{"learned values of another agent", sevenAfter(func(_ *testing.T, w *world) { w.app.DocumentsAreOurs = false }), unjudged},
		{"a spec that the agent refuses", sevenAfter(func(_ *testing.T, w *world) { w.app.Spec.Manifest = "{apiVersion: v1}" }), unjudged},
		{"a creation", sevenWith(func(request *admission.Request) { request.Operation, request.OldObject.Raw = admissionv1.Create, nil }), unjudged},
		{"a status", sevenWith(func(request *admission.Request) { request.SubResource = "status" }), unjudged},
		{"no stored object", func(t *testing.T, w *world) admission.Request {
			request := w.remove(t)
			request.OldObject.Raw = nil
			return request
		}, unjudged},
		{"a stored object that is no JSON", sevenWith(func(request *admission.Request) { request.OldObject.Raw = []byte("{") }), unjudged},
		{"an object that is no JSON", sevenWith(func(request *admission.Request) { request.Object.Raw = []byte("{}{}") }), unjudged},
		{"an update without an object is no deletion", sevenWith(func(request *admission.Request) { request.Object.Raw = []byte("null") }), unjudged},
	} {
		s.denying().run(t)
	}
}

// A request whose client has gone waits for no plan.
func TestARequestThatIsOverIsNotJudged(t *testing.T) {
	w := newWorld(t, deployment)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Must(t, w.plans.planning.Acquire(t.Context(), planningAtOnce))
	check.Equal(t, "answer", unjudged, w.ask(ctx, w.seven(t)))
}

func TestAChangeOfTheScaleIsJudgedWithTheObject(t *testing.T) {
	for _, s := range []scenario{
		{"another number", func(t *testing.T, w *world) admission.Request { return w.scale(t, 3, 7) }, warnedOf(replicasText)},
		{"a number that is denied", func(t *testing.T, w *world) admission.Request {
			w.app.Settings.Guard = application.GuardDeny
			return w.scale(t, 3, 0)
		}, deniedWith(replicasText)},
		{"the desired number", func(t *testing.T, w *world) admission.Request {
			w.live = w.edited(t, int64(7), "spec", "replicas")
			return w.scale(t, 7, 3)
		}, untold},
		{"the same number, beside a drift of another field", func(t *testing.T, w *world) admission.Request {
			w.live = w.edited(t, "x", "metadata", "labels", application.OwnedByLabel)
			return w.scale(t, 3, 3)
		}, untold},
		{"a held object", func(t *testing.T, w *world) admission.Request {
			w.live = w.edited(t, noon.Add(time.Hour).Format(time.RFC3339), "metadata", "annotations", application.HoldUntilAnnotation)
			return w.scale(t, 3, 7)
		}, untold},
		{"an object without a spec, which was replaced since", func(t *testing.T, w *world) admission.Request {
			unstructured.RemoveNestedField(w.live, "spec")
			return w.scale(t, 3, 7)
		}, warnedOf(replicasText)},
		{"an object that cannot be read", func(t *testing.T, w *world) admission.Request {
			w.liveFails = errSilent
			return w.scale(t, 3, 7)
		}, unjudged},
		{"an object of no Application", func(t *testing.T, w *world) admission.Request {
			unstructured.RemoveNestedField(w.live, "metadata", "annotations")
			return w.scale(t, 3, 7)
		}, unowned},
		{"no Scale", func(t *testing.T, w *world) admission.Request {
			request := w.scale(t, 3, 7)
			request.Object.Raw = []byte(`{"spec":{"replicas":"many"}}`)
			return request
		}, unjudged},
	} {
		s.run(t)
	}
}

// The object that the guard has read may be shared.
func TestAScaleLeavesTheObjectAsItIs(t *testing.T) {
	w := newWorld(t, deployment)
	kept := runtime.DeepCopyJSON(w.live)
	w.ask(t.Context(), w.scale(t, 3, 7))
	check.Equal(t, "object", kept, w.live)
}

// An API server drops a warning with control characters, and cuts long ones if all of them are too long.
func TestWarningsStayWithinTheLimits(t *testing.T) {
	const fields = 100
	manifestText := `{apiVersion: example.com/v1, kind: Song, metadata: {name: web}, spec: {`
	live := map[string]any{}
	for i := range fields {
		name := strings.Repeat(string(rune('a'+i%26)), i) + strings.Repeat("ä", 120) + `\n`
		manifestText += `"` + name + `": right, `
		live[strings.ReplaceAll(name, `\n`, "\n")] = "wrong"
	}
	w := newWorld(t, manifestText+"}}")
	got := w.ask(t.Context(), w.update(t, w.edited(t, live, "spec")))
	check.Equal(t, "result", warned, got.Result)
	checkTexts(t, got.Warnings)
	const wayOut = "Change it there, or hold it first: kubectl krake hold -n shop web song/web"
	check.Equal(t, "last warnings", []string{"The agent will also revert 90 more differences.", wayOut}, got.Warnings[maxTexts:])
	if !strings.HasSuffix(got.Warnings[0], "...") {
		t.Errorf("a text that is cut does not say so: %q", got.Warnings[0])
	}
}

// A command that is cut cannot be pasted.
func TestTheWayOutIsNeverCut(t *testing.T) {
	name := strings.Repeat("long-name.", 24) + "web"
	w := newWorld(t, strings.Replace(deployment, "metadata: {name: web}", "metadata: {name: "+name+"}", 1))
	got := w.ask(t.Context(), w.seven(t))
	if len(got.Warnings) != 1 || !strings.HasSuffix(got.Warnings[0], "kubectl krake hold -n shop web deployment/"+name) {
		t.Errorf("warnings %q", got.Warnings)
	}
}

// checkTexts checks the limits of texts that an API server passes on.
func checkTexts(t *testing.T, texts []string) {
	t.Helper()
	if len(texts) > maxTexts+2 {
		t.Errorf("%d texts", len(texts))
	}
	for _, text := range texts {
		if len(text) > maxText || text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// The loop has plans of its own.
func TestOnlySmallPlansAreKept(t *testing.T) {
	w := newWorld(t, deployment)
	for range 2 {
		check.Equal(t, "answer", warnedOf(replicasText), w.ask(t.Context(), w.seven(t)))
	}
	check.Equal(t, "plans", 1, w.plans.lately.Len())

	large := newWorld(t, deployment+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {text: "+strings.Repeat("x", maxPlan)+"}}")
	check.Equal(t, "answer", warnedOf(replicasText), large.ask(t.Context(), large.seven(t)))
	check.Equal(t, "plans that are large", 0, large.plans.lately.Len())
}

// What was kept is used without waiting for the plans of others.
func TestAKeptPlanWaitsForNoOther(t *testing.T) {
	w := newWorld(t, deployment)
	check.Equal(t, "answer", warnedOf(replicasText), w.ask(t.Context(), w.seven(t)))
	check.Must(t, w.plans.planning.Acquire(t.Context(), planningAtOnce))
	check.Equal(t, "answer meanwhile", warnedOf(replicasText), w.ask(t.Context(), w.seven(t)))
}

// Any client that reaches the port may send reviews.
func TestForgedReviews(t *testing.T) {
	t.Run("the value of an object without its UID", func(t *testing.T) {
		w := newWorld(t, deployment)
		w.live = w.edited(t, "a guess", "metadata", "annotations", application.OwnerUIDAnnotation)
		check.Equal(t, "answer", unjudged, w.ask(t.Context(), w.seven(t)))
	})
	t.Run("the scale of another resource", func(t *testing.T) {
		w := newWorld(t, deployment)
		w.Live = func(context.Context, manifest.Ref) (map[string]any, error) {
			t.Error("it is read")
			return nil, errSilent
		}
		for _, resource := range []metav1.GroupVersionResource{
			{Version: "v1", Resource: "secrets"}, {Group: "apps", Version: "v1", Resource: "../../../api/v1/secrets"}, {Group: "apps", Version: "v2", Resource: "deployments"},
		} {
			request := w.scale(t, 3, 7)
			request.Resource = resource
			check.Equal(t, "answer", unjudged, w.ask(t.Context(), request))
		}
	})
	t.Run("an object that is large once it is decoded", func(t *testing.T) {
		w := newWorld(t, deployment)
		request := w.seven(t)
		request.Object.Raw = []byte(`{"spec": [` + strings.Repeat(`{"a":0},`, maxDecoded/8) + `0]}`)
		check.Equal(t, "answer", unjudged, w.ask(t.Context(), request))
	})
	t.Run("a large object of no Application", func(t *testing.T) {
		w := newWorld(t, deployment)
		request := w.seven(t)
		many := []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "spec": [` + strings.Repeat(`{"a":0},`, 10_000) + `0]}`)
		request.OldObject.Raw = many
		// Maps of all elements would be more than a million allocations in ten answers.
		if allocations := testing.AllocsPerRun(10, func() { w.ask(t.Context(), request) }); allocations > 1000 {
			t.Errorf("%v allocations", allocations)
		}
	})
}

// A server that cannot listen must not end the agent.
func TestAGuardThatCannotServeTriesAgain(t *testing.T) {
	w := newWorld(t, deployment)
	ctx, cancel := context.WithCancel(t.Context())
	w.serve(ctx, func(context.Context) error {
		check.Equal(t, "serving", 1.0, gauge(t, w.metrics.serving))
		cancel()
		return errSilent
	})
	check.Equal(t, "serving", 0.0, gauge(t, w.metrics.serving))
}

func gauge(t *testing.T, metric prometheus.Gauge) float64 {
	t.Helper()
	var written dto.Metric
	check.Must(t, metric.Write(&written))
	return written.GetGauge().GetValue()
}

func TestAChangedManifestCounts(t *testing.T) {
	w := newWorld(t, deployment)
	check.Equal(t, "answer", warnedOf(replicasText), w.ask(t.Context(), w.seven(t)))
	w.app.Spec = newApplication(t, strings.Replace(deployment, "replicas: 3", "replicas: 7", 1)).Spec
	check.Equal(t, "answer to what is desired now", untold, w.ask(t.Context(), w.seven(t)))
}

func TestEachResultIsCounted(t *testing.T) {
	w := newWorld(t, deployment)
	registry := prometheus.NewRegistry()
	check.Must(t, w.metrics.register(registry))
	if response := w.Handle(t.Context(), w.seven(t)); !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("response %+v", response)
	}
	families, err := registry.Gather()
	check.Must(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch {
			case metric.GetGauge() != nil:
			case metric.GetHistogram() != nil:
				got[family.GetName()] = float64(metric.GetHistogram().GetSampleCount())
			default:
				got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	check.Equal(t, "counts", map[string]float64{
		"krake_guard_duration_seconds": 1, "warned": 1, "quiet": 0, "denied": 0, "bypassed": 0, "off": 0, "foreign": 0, "unknown": 0,
	}, got)
	check.Fails(t, "the second registration", w.metrics.register(registry), "duplicate")
}
