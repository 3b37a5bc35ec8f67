package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/internal/forecast"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/internal/webhook/limit"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Source is what the guard knows and reports.
type Source struct {
	// Get returns an Application as this replica knows it, nil if there is none.
	Get func(context.Context, types.NamespacedName) (*application.Application, error)
	// Home returns the namespace of the target for an Application's namespace on the hub.
	Home func(namespace string) string
	// Writer returns the user who writes the objects of an Application, "" for the agent itself.
	Writer func(*application.Application) string
	// Types returns the types of an object whose kind is not built in, nil if they are not known.
	Types plan.TypesOf
	// Live returns an object of the target. The guard reads one to judge a change of its scale.
	Live func(context.Context, manifest.Ref) (map[string]any, error)
	// Report reports that a user broke the glass.
	Report func(*application.Application, status.Outcome)
	// MaxHold bounds a hold on one object, as for the loop.
	MaxHold time.Duration
	Now     func() time.Time
	Logger  logr.Logger
}

// handler answers the reviews of the target's API server.
type handler struct {
	Source

	options Options
	plans   plans
	metrics metrics
	// reading bounds the reads of live objects, and decoding the bytes of objects that are held decoded, which
	// takes up to forty times their size.
	reading, decoding *semaphore.Weighted
}

const (
	readingAtOnce = 4
	maxDecoded    = 1 << 20
)

func newHandler(source Source, options Options) *handler {
	return &handler{
		Source: source, options: options, plans: newPlans(), metrics: newMetrics(),
		reading: semaphore.NewWeighted(readingAtOnce), decoding: semaphore.NewWeighted(maxDecoded),
	}
}

// Handle implements admission.Handler.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	started := h.Now()
	what, response := h.answer(ctx, request)
	h.metrics.requests.WithLabelValues(string(what)).Inc()
	h.metrics.duration.Observe(h.Now().Sub(started).Seconds())
	// The log has nothing of what is in the object.
	h.Logger.V(1).Info("judged", "kind", request.Kind.Kind, "object", request.Namespace+"/"+request.Name,
		"operation", request.Operation, "user", request.UserInfo.Username, "result", string(what))
	return response
}

// answer judges a request. One that cannot be judged passes.
func (h *handler) answer(ctx context.Context, request admission.Request) (result, admission.Response) {
	passes := admission.Allowed("")
	about, err := h.subjectOf(ctx, request)
	if err != nil {
		h.logUnjudged(request, err)
		return unknown, passes
	}
	owner, isMarked := application.OwnerOf(about.head)
	if !isMarked {
		return foreign, passes
	}
	app, err := h.Get(ctx, owner)
	switch {
	case err != nil, app == nil, !application.Marks(app.NamespacedName, app.UID, about.at.ID).Prove(about.head):
		return unknown, passes
	case app.NotAdmitted != nil, !app.IsCurrent(), !app.DocumentsAreOurs, app.Status.ClusterName() != app.Cluster:
		return unknown, passes // the agent does nothing, has yet to arrive, or has left
	case app.Settings.Guard == application.GuardOff:
		return off, passes
	case request.UserInfo.Username == h.Writer(app):
		return quiet, passes
	}
	found, err := h.judge(ctx, request, about, app)
	switch {
	case err != nil:
		h.logUnjudged(request, err)
		return unknown, passes
	case len(found.texts) == 0:
		return quiet, passes
	case app.Settings.Guard != application.GuardDeny:
		return warned, passes.WithWarnings(found.texts...)
	case h.mayBreakGlass(request):
		h.reportBypass(app, request, about.at.ID, found.undone)
		return bypassed, passes.WithWarnings(found.texts...)
	}
	return denied, refusal(found.texts)
}

func (h *handler) logUnjudged(request admission.Request, why error) {
	h.Logger.V(1).Info("cannot judge", "object", request.Namespace+"/"+request.Name, "reason", why.Error())
}

// judgement is what the agent will do about a request, and the texts for its user.
type judgement struct {
	undone schema.Differences
	texts  []string
}

var (
	errUnplanned = errors.New("the Application does not want the object")
	errSize      = errors.New("the object is too large for the guard")
	errVersion   = errors.New("it is in another version of the API, where fields have other names")
)

func (h *handler) judge(ctx context.Context, request admission.Request, about subject, app *application.Application) (judgement, error) {
	object, planned, err := h.plans.find(ctx, app, about.at, h.Home(app.Namespace), h.Types)
	switch {
	case err != nil:
		return judgement{}, err
	case !planned:
		return judgement{}, errUnplanned
	case request.Operation == admissionv1.Delete:
		if !forecast.Recreated(app, &object, about.head) {
			return judgement{}, nil
		}
		return judgement{texts: []string{printable(forecast.TextOfDeletion(app, object.ID))}}, nil
	case object.APIVersion != about.at.APIVersion:
		return judgement{}, errVersion
	}
	size := int64(len(request.OldObject.Raw) + len(request.Object.Raw))
	if size > maxDecoded {
		return judgement{}, errSize
	}
	if err := h.decoding.Acquire(ctx, size); err != nil {
		return judgement{}, err
	}
	defer h.decoding.Release(size)
	before, after, err := change(request, about)
	if err != nil {
		return judgement{}, err
	}
	undone := forecast.Undone(app, &object, before, after, forecast.Setting{Now: h.Now(), MaxHold: h.MaxHold})
	return judgement{undone, textsOf(app, object.ID, undone, after)}, nil
}

// reportBypass reports that a user broke the glass, unless nothing came of it.
func (h *handler) reportBypass(app *application.Application, request admission.Request, id manifest.ID, undone schema.Differences) {
	if request.DryRun != nil && *request.DryRun {
		return
	}
	outcome := status.Outcome{Action: status.GlassBroken, Object: id, Reason: request.UserInfo.Username}
	for _, d := range undone {
		outcome.Paths = append(outcome.Paths, d.Path)
	}
	h.Report(app, outcome)
}

func (h *handler) mayBreakGlass(request admission.Request) bool {
	return slices.Contains(h.options.BreakGlassUsers, request.UserInfo.Username) ||
		slices.ContainsFunc(request.UserInfo.Groups, func(group string) bool { return slices.Contains(h.options.BreakGlassGroups, group) })
}

// refusal answers 403.
func refusal(texts []string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: strings.Join(texts, " "),
	}}}
}

// subjectOf reads what a request is about.
func (h *handler) subjectOf(ctx context.Context, request admission.Request) (subject, error) {
	resource := gvr.GroupVersionResource{Group: request.Resource.Group, Version: request.Resource.Version, Resource: request.Resource.Resource}
	var s subject
	switch isUpdate := request.Operation == admissionv1.Update; {
	case request.SubResource == scale && isUpdate && slices.Contains(scaled, resource):
		limit.GiveBack(ctx) // others must not wait for this answer
		var err error
		if s.head, err = h.read(ctx, manifest.Ref{ID: manifest.ID{Namespace: request.Namespace, Name: request.Name}, Resource: resource}); err != nil {
			return s, err
		}
	case request.SubResource == "" && (isUpdate || request.Operation == admissionv1.Delete):
		var err error
		if s.head, err = headOf(request.OldObject.Raw); err != nil {
			return s, err
		}
	default:
		return s, fmt.Errorf("%s of %q is nothing that the agent reverts", request.Operation, request.SubResource)
	}
	id, err := manifest.Identify(s.head)
	s.at = manifest.Ref{ID: id, Resource: resource}
	return s, err
}

// read reads a live object.
func (h *handler) read(ctx context.Context, at manifest.Ref) (map[string]any, error) {
	if err := h.reading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer h.reading.Release(1)
	return h.Live(ctx, at)
}
