package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/webhook/limit"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// handler answers the admission requests of ConfigMaps that are, or were,
// Applications. It reads from the API server, and writes nothing but dry runs.
type handler struct {
	scope    mutate.Scope
	accounts mutate.Accounts
	// urlSources says that agents fetch what is behind URLs.
	urlSources bool
	kinds      *discovery.Guesser
	authority  *authority
	dryRunner  *dryRunner // nil: it is turned off
	signing    *signing
	// computing bounds the requests that are computed at once: a text of 256 KiB can take 60 MiB,
	// and more requests than processors gain nothing.
	computing *semaphore.Weighted
	now       func() time.Time
	logger    logr.Logger
}

// Handle implements admission.Handler.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	started := h.now()
	response := h.answer(ctx, request)
	verdict := verdictOf(response)
	admissions.WithLabelValues(operationOf(request), verdict).Inc()
	durations.WithLabelValues("whole").Observe(h.now().Sub(started).Seconds())
	level := 0
	if response.Allowed {
		level = 1
	}
	// The log has nothing of what is in the ConfigMap.
	h.logger.V(level).Info("answered", "application", request.Namespace+"/"+request.Name,
		"operation", request.Operation, "user", request.UserInfo.Username, "verdict", verdict, "fields", fieldsOf(response))
	return response
}

func (h *handler) answer(ctx context.Context, request admission.Request) admission.Response {
	var cm, stored corev1.ConfigMap
	if err := json.Unmarshal(request.Object.Raw, &cm); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the ConfigMap: %w", err))
	}
	if request.Operation == admissionv1.Update {
		if err := json.Unmarshal(request.OldObject.Raw, &stored); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the stored ConfigMap: %w", err))
		}
	}
	// The configuration of the webhook leaves out the writes of agents, because they have to
	// be possible without a webhook. The name of an agent is that of its cluster.
	if cluster, ok := strings.CutPrefix(request.UserInfo.Username, application.AgentUserPrefix); ok {
		return h.answerAgent(request, &cm, &stored, cluster)
	}
	return h.answerUser(ctx, request, &cm, &stored)
}

// answerUser admits an Application that is valid and that its user has the rights to.
func (h *handler) answerUser(ctx context.Context, request admission.Request, cm, stored *corev1.ConfigMap) admission.Response {
	admitted, err := h.signing.admitted(stored)
	if err != nil {
		return unanswerable(err)
	}
	after := cm.DeepCopy()
	after.Namespace = request.Namespace // the object need not say it
	account := h.accounts.For(cm.Annotations[application.ServiceAccountAnnotation])
	home := mutate.Home{Hub: request.Namespace, Target: request.Namespace, Account: account != ""}
	denied, unknown, err := h.deniedOf(ctx, home, request.UserInfo, after, stored, admitted)
	switch {
	case err != nil:
		return unanswerable(err)
	case len(denied) > 0:
		return forbidden(request.Name, request.UserInfo.Username, denied).WithWarnings(truncate(unknown)...)
	}
	prepared, err := h.prepare(ctx, request, after, stored, admitted)
	if err != nil {
		return unanswerable(err)
	}
	objects, refusals, err := h.place(home, &prepared)
	objects.filled = mutate.Filled(after, prepared.Wanted)
	if prepared.Checked {
		refusals = append(refusals, h.accounts.CheckValues(after)...)
	}
	switch {
	case err != nil:
		return unanswerable(err)
	case len(prepared.Refusals)+len(refusals) > 0:
		return invalid(request.Name, slices.Concat(prepared.Refusals, refusals)).WithWarnings(truncate(prepared.Warnings)...)
	}
	if prepared.Checked {
		needs := h.accounts.Needs(after, stored, objects.wanted, mutate.Left(objects.wanted, objects.former))
		started := h.now()
		access := make(chan writerAccess, 1) // at the same time: both wait for the API server
		go func() { access <- h.checkWriterAccess(ctx, after, writerOf(request.Namespace, account), objects) }()
		denied, err := h.authority.denied(ctx, request.UserInfo, needs)
		ahead := <-access
		durations.WithLabelValues("review").Observe(h.now().Sub(started).Seconds())
		switch {
		case err != nil:
			return unanswerable(err)
		case len(denied) > 0:
			return forbidden(request.Name, request.UserInfo.Username, denied).WithWarnings(truncate(prepared.Warnings)...)
		}
		// The user may act as the writer, and so may learn what it may do, and what it is refused.
		prepared.Warnings = append(prepared.Warnings, h.creationWarnings(ctx, ahead, objects, &prepared)...)
	}
	if prepared.Signable && !ptr.Deref(request.DryRun, false) { // nothing is stored that would need a signature
		if err := h.signing.sign(after); err != nil {
			return unanswerable(err)
		}
	}
	after.Namespace = cm.Namespace
	return difference(cm, after).WithWarnings(truncate(prepared.Warnings)...)
}

// computingAtOnce is the number of processors that the Pod is limited to.
const computingAtOnce = 2

// deniedOf returns the rights to the objects in the text that the user does not have, with warnings about
// unknown kinds. These rights are asked for first, so that nothing is computed for a user who may not
// create what the text names. Those to the objects of the former spec and of hooks follow when they are known.
func (h *handler) deniedOf(
	ctx context.Context, home mutate.Home, user authenticationv1.UserInfo, cm, stored *corev1.ConfigMap, admitted bool,
) (denied []mutate.Need, unknown []string, err error) {
	var named []manifest.ID
	if err := h.compute(ctx, func(time.Time) { named = mutate.Named(cm, stored, admitted) }); err != nil || len(named) == 0 {
		return nil, nil, err
	}
	objects, err := h.kinds.Objects(named)
	if err != nil {
		return nil, nil, err
	}
	refs := make([]manifest.Ref, len(objects)) // empty for an object that is refused, whatever the rights
	for i := range objects {
		if placed, refusals := h.scope.Confine(home, objects[i:i+1]); len(refusals) == 0 {
			refs[i] = placed[0]
		}
	}
	first := mutate.NeedsOf(cm, refs)
	if denied, err = h.authority.denied(ctx, user, first); err != nil || len(denied) == 0 {
		return nil, nil, err
	}
	others, err := h.authority.denied(ctx, user, h.accounts.Needs(cm, stored, refs, nil)[len(first):]) // the user is told all at once
	return append(denied, others...), mutate.RelocateTexts(unknownKinds(objects), application.SpecOf(cm)), err
}

// compute computes something when it is its turn, and the request has not ended.
func (h *handler) compute(ctx context.Context, do func(started time.Time)) error {
	if err := h.computing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer h.computing.Release(1)
	started := h.now()
	do(started)
	durations.WithLabelValues("compute").Observe(h.now().Sub(started).Seconds())
	return ctx.Err()
}

// prepare computes the Application.
func (h *handler) prepare(ctx context.Context, request admission.Request, after, stored *corev1.ConfigMap, admitted bool) (mutate.Prepared, error) {
	var prepared mutate.Prepared
	err := h.compute(ctx, func(started time.Time) {
		prepared = mutate.PrepareForUpdate(ctx.Err, after, stored, admitted)
		prepared.Warnings = append(prepared.Warnings, mutate.RecordHolder(after, stored, request.UserInfo.Username)...)
		prepared.Warnings = append(prepared.Warnings, mutate.SuspectHold(after, stored, started)...)
	})
	return prepared, err
}

// place finds where the objects are, and refuses those that the Application may not reach.
func (h *handler) place(home mutate.Home, prepared *mutate.Prepared) (placed, field.ErrorList, error) {
	var p placed
	wanted, err := h.kinds.Objects(prepared.Wanted)
	if err != nil {
		return p, nil, err
	}
	prepared.Warnings = append(prepared.Warnings, mutate.RelocateTexts(unknownKinds(wanted), prepared.Spec)...)
	former, err := h.kinds.Objects(prepared.Former)
	if err != nil {
		return p, nil, err
	}
	var refusals field.ErrorList
	p.wanted, refusals = h.scope.Confine(home, wanted)
	refusals = mutate.Relocate(append(refusals, h.unfetchable(prepared)...), prepared.Spec)
	p.former, _ = h.scope.Confine(home, former) // the rights to objects out of its reach are still checked
	held, err := h.kinds.Objects(prepared.Held)
	if err != nil {
		return p, nil, err
	}
	p.held, _ = h.scope.Confine(home, held)
	for i, object := range wanted {
		if object.Guessed && h.scope == mutate.ClusterScope {
			p.wanted[i].Namespace = "" // the kind may be cluster-scoped
		}
		p.unknown = append(p.unknown, object.Guessed)
	}
	return p, refusals, nil
}

// unfetchable refuses a URL where agents do not fetch: the user of the Application would
// choose where they send requests, and admission cannot check what they would create.
func (h *handler) unfetchable(prepared *mutate.Prepared) field.ErrorList {
	if prepared.URL == "" || h.urlSources {
		return nil
	}
	key, _ := prepared.Spec.Source()
	return field.ErrorList{field.Forbidden(field.NewPath("data").Child(key),
		"nothing is fetched from URLs here: put the text, or the archive, in its place, or have an administrator start webhook and agents in strict mode with --url-sources and --url-source-hosts")}
}

// answerAgent admits the writes of agents to their own fields.
func (h *handler) answerAgent(request admission.Request, cm, stored *corev1.ConfigMap, cluster string) admission.Response {
	if request.Operation != admissionv1.Update {
		return invalid(request.Name, field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(application.FormatAnnotation),
			"an agent creates no Applications")})
	}
	if refusals := mutate.CheckAgentUpdate(cm, stored, cluster); len(refusals) > 0 {
		return invalid(request.Name, refusals)
	}
	return admission.Allowed("")
}

// checkWriterAccess finds out which kinds of objects the writer may not create. On another cluster the
// rights are unknown here, and in other modes than enforce nothing is created.
func (h *handler) checkWriterAccess(ctx context.Context, cm *corev1.ConfigMap, by writer, p placed) writerAccess {
	mode := application.Mode(cm.Annotations[application.ModeAnnotation])
	if application.ClusterOf(cm) != application.LocalCluster || mode == application.Observe || mode == application.Suspend {
		return writerAccess{}
	}
	ahead := writerAccess{writer: by, adopts: cm.Annotations[application.AdoptAnnotation] == "true", known: true}
	var err error
	if ahead.denied, err = h.authority.denied(ctx, by.user(), p.needs("create")); err == nil && !by.isAgent() {
		ahead.agentDenied, err = h.authority.denied(ctx, writerOf("", "").user(), p.agentNeeds())
	}
	if err != nil {
		h.logger.V(1).Info("the rights of the writer are unknown", "error", err.Error())
		return writerAccess{}
	}
	return ahead
}

// actAsToCreate is the verb that allows an agent to create objects as a service account. A role that has it has those to
// patch and to delete as well.
const actAsToCreate = application.ActingAs + "create"

// creationWarnings returns warnings about kinds that the writer may not create, and about mistakes that the
// API server finds in new objects. The Application is admitted. The right may be granted later, and
// another API server may accept the object.
func (h *handler) creationWarnings(ctx context.Context, ahead writerAccess, p placed, prepared *mutate.Prepared) []string {
	if !ahead.known {
		return nil
	}
	var warnings []string
	lacking := sets.Set[mutate.Access]{}
	for _, need := range ahead.denied {
		lacking.Insert(need.Access)
		warnings = append(warnings, fmt.Sprintf("%s: %s may not %s: have an administrator grant it", need.Path, ahead.writer, need.Access))
	}
	for _, need := range joinVerbs(ahead.agentDenied) {
		warnings = append(warnings, fmt.Sprintf("%s: the agent may not %s: have an administrator grant it, by a ClusterRole with the label %s=true",
			need.Path, need.Access, application.AggregateLabel))
	}
	if h.dryRunner != nil && !ahead.adopts {
		if fresh := p.candidates(prepared.Resources, lacking); len(fresh) > 0 {
			limit.GiveBack(ctx)
			started := h.now()
			warnings = append(warnings, h.dryRunner.warnings(ctx, fresh)...)
			durations.WithLabelValues("dry-run").Observe(h.now().Sub(started).Seconds())
		}
	}
	return mutate.RelocateTexts(warnings, prepared.Spec)
}
