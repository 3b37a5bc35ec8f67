package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Shutdowns asks Applications to shut down.
type Shutdowns interface {
	// Call asks the Service of an Application, on the target, and does not wait for
	// more than its answer.
	Call(ctx context.Context, service manifest.Ref, port int32) error
}

// ShutdownDefaults are what counts for an Application that does not say otherwise.
type ShutdownDefaults struct {
	// GraceTime is how long an attempt takes at most.
	GraceTime time.Duration
	Strategy  application.ShutdownStrategy
	// Retries are the attempts after the first one.
	Retries int
}

// A call that fails is made again within the attempt: the Pod may be starting.
const (
	leastCallPause = time.Second
	mostCallPause  = 30 * time.Second
)

// calls are those of one attempt, as far as this process has made them: a restarted
// agent asks once more.
type calls struct {
	attempt  int
	deadline time.Time
	failed   int
	next     time.Time
	answered bool
	// message is why the last one has failed, empty if it has not.
	message string
}

// shutdown is the shutdown of one Application that is to go from this cluster.
type shutdown struct {
	*Reconciler

	app *application.Application
	// known is nil for whoever is not the loop.
	known *memory
	// former tells that the Application is moved away: of its status, nothing is ours.
	former bool
}

// shutDown asks an Application that is to go to shut down first, if it wants that,
// and tells if what it holds has to wait for it.
func (r *Reconciler) shutDown(ctx context.Context, app *application.Application) (waits bool, result ctrl.Result, err error) {
	if !hasToShutDown(app) {
		return false, ctrl.Result{}, nil
	}
	s := &shutdown{Reconciler: r, app: app, known: r.memories.of(app), former: !app.IsCurrent()}
	switch gone, err := s.isGone(ctx); {
	case err != nil:
		return true, ctrl.Result{}, s.cannotLook(ctx, err)
	case gone:
		return false, ctrl.Result{}, nil
	}
	if err := s.advance(ctx); err != nil {
		return true, ctrl.Result{}, err
	}
	switch app.Hooks.Shutdown.State {
	case application.StateWaiting:
		after, err := s.call(ctx)
		return true, ctrl.Result{RequeueAfter: after}, err
	case application.StateDegraded: // until somebody does something
		return true, ctrl.Result{RequeueAfter: slowRetry}, nil
	}
	return false, ctrl.Result{}, nil
}

// hasToShutDown tells if an Application that is to go has to shut down first. What is
// over has nothing more to wait for.
func hasToShutDown(app *application.Application) bool {
	if !app.Spec.Hooks.Shutdown || app.Hooks.Completed {
		return false
	}
	record := app.Hooks.Shutdown
	over := record != nil && (record.State == application.StateReady || record.State == application.StateDeleting)
	return len(app.Inventory) > 0 && !over
}

// advance brings the record to where the shutdown is now, and stores it: an attempt
// is taken note of, with when it ends, before it is made.
func (s *shutdown) advance(ctx context.Context) error {
	former := s.app.Hooks.Shutdown
	record := s.next()
	if err := s.tell(ctx, record); err != nil {
		return err
	}
	if former != nil && former.State == application.StateWaiting && record.State != application.StateWaiting {
		s.Report(s.app, Outcome{Action: NotShutDown, Object: itself(s.app), Reason: record.Message})
	}
	return nil
}

// next gives how far the shutdown is now. Who was not asked, because the agent was
// away, is asked before the attempt counts.
func (s *shutdown) next() application.ShutdownRecord {
	record := s.app.Hooks.Shutdown
	switch {
	case record == nil,
		record.State == application.StateDegraded && record.Retry != s.app.Wishes.Shutdown.Retry:
		return s.attempt(1)
	case record.State == application.StateDegraded, s.Now().Before(record.Deadline.Time):
		return *record
	case !record.Asked:
		return s.attempt(record.Attempt)
	case record.Attempt <= s.retries():
		return s.attempt(record.Attempt + 1)
	}
	ended := *record
	ended.State, ended.Message = application.StateDegraded, s.whyEnded()
	if s.strategy() == application.DeleteAnyway {
		ended.State = application.StateDeleting
	}
	return ended
}

func (s *shutdown) attempt(n int) application.ShutdownRecord {
	return application.ShutdownRecord{
		State: application.StateWaiting, Attempt: n,
		Deadline: metav1.NewTime(s.Now().Add(s.graceTime()).Truncate(time.Second).Add(time.Second)), // as it is stored
		Retry:    s.app.Wishes.Shutdown.Retry,
	}
}

func (s *shutdown) whyEnded() string {
	why, message := fmt.Sprintf("it has not confirmed within %s", s.graceTime()), s.app.Hooks.Shutdown.Message
	if made := &s.known.calls; made.isOf(s.app.Hooks.Shutdown) {
		message = made.message
	}
	if message != "" {
		why += ": " + message
	}
	return cut(why)
}

// tell stores how far the shutdown has got, and has the conditions tell, unless
// another agent has to.
func (s *shutdown) tell(ctx context.Context, record application.ShutdownRecord) error {
	s.app.Hooks.Shutdown = &record
	if !s.former {
		s.shuttingDown(record)
	}
	if err := s.store(ctx, s.app); err != nil {
		return err
	}
	if s.known != nil {
		s.known.stored()
	}
	return nil
}

// cannotLook says why it is not known if anything is there to be shut down.
func (s *shutdown) cannotLook(ctx context.Context, why error) error {
	if s.former {
		return why
	}
	s.set(s.app, application.ReadyCondition, reconciledOf(findings{verdicts: []verdict{{reason: reasonOf(why), message: explain(why)}}}))
	return errors.Join(why, s.update(ctx, s.app))
}

// shuttingDown sets conditions and state of an Application that is to shut down.
func (s *shutdown) shuttingDown(record application.ShutdownRecord) {
	ready := metav1.Condition{Status: metav1.ConditionFalse, Reason: "ShuttingDown", Message: fmt.Sprintf(
		"the Application is asked to shut down (attempt %d), and has until %s to confirm that", record.Attempt, record.Deadline.UTC().Format(time.RFC3339))}
	stalled := metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonProgressing}
	switch {
	case record.State == application.StateReady:
		ready.Reason, ready.Message = "ShutDown", "the Application has shut down"
	case record.State == application.StateDegraded:
		ready.Reason, ready.Message = reasonNotShutDown, notShutDown(record.Message)
		stalled = metav1.Condition{Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message}
	case record.State == application.StateDeleting:
		ready.Reason, ready.Message = reasonNotShutDown, record.Message
	case record.Message != "":
		ready.Message = cut(ready.Message + "; a call has failed: " + record.Message)
	}
	s.set(s.app, application.StalledCondition, stalled)
	s.set(s.app, application.ReadyCondition, ready)
	s.app.Status.State = record.State
}

func notShutDown(why string) string {
	return cut("the Application did not shut down, and is kept: ask once more with a new value of " + application.ShutdownRetryAnnotation +
		", or take shutdown out of " + application.HooksAnnotation + ": " + why)
}

// isOf tells if these are the calls of the attempt.
func (c *calls) isOf(record *application.ShutdownRecord) bool {
	return c.attempt == record.Attempt && c.deadline.Equal(record.Deadline.Time)
}

// call asks the Application, unless it has answered in this attempt, and says when
// to look again. That it was asked is stored once in an attempt, with what is wrong
// with the first call.
func (s *shutdown) call(ctx context.Context) (time.Duration, error) {
	record, made := *s.app.Hooks.Shutdown, &s.known.calls
	if !made.isOf(&record) {
		*made = calls{attempt: record.Attempt, deadline: record.Deadline.Time}
	}
	if !made.answered && !s.Now().Before(made.next) {
		s.ask(ctx, made)
		if !record.Asked {
			record.Asked, record.Message = true, made.message
			if err := s.tell(ctx, record); err != nil {
				return 0, err
			}
		}
	}
	soon := min(record.Deadline.Sub(s.Now()), mostCallPause)
	if !made.answered {
		soon = min(soon, made.next.Sub(s.Now()))
	}
	return max(soon, time.Millisecond), nil
}

// ask makes one call.
func (s *shutdown) ask(ctx context.Context, made *calls) {
	err := s.request(ctx)
	if err == nil {
		made.answered, made.message = true, ""
		s.Report(s.app, Outcome{Action: AskedToShutDown, Object: itself(s.app)})
		return
	}
	made.next = s.Now().Add(min(leastCallPause<<min(made.failed, 8), mostCallPause))
	made.failed++
	made.message = explain(err)
	if unheard, ok := errors.AsType[unheardError](err); ok { // no API server has said it
		made.message = cut(unheard.Error())
	}
}

// unheardError is the error of a call to a Service that was not heard.
type unheardError struct{ error }

func (e unheardError) Unwrap() error { return e.error }

// request calls the Service of the Application, and no other.
func (s *shutdown) request(ctx context.Context) error {
	at := slices.IndexFunc(s.app.Inventory, func(id manifest.ID) bool {
		return id.APIVersion == "v1" && id.Kind == "Service" && id.Name == application.ShutdownService
	})
	switch {
	case s.Shutdowns == nil:
		return errors.New("this agent calls no Services, as it was started without --hooks: have an administrator install the hooks (overlays/hooks)")
	case at < 0:
		return fmt.Errorf("the Application has no Service called %s that could be asked: add one to its manifest, or take shutdown off its annotation %s", application.ShutdownService, application.HooksAnnotation)
	}
	ref, live, err := s.read(ctx, s.app.Inventory[at])
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("the Service %s is not there", application.ShutdownService)
	}
	port, err := portOf(live)
	if err != nil {
		return err
	}
	if err := s.Shutdowns.Call(ctx, ref, port); err != nil {
		return unheardError{err}
	}
	return nil
}

// portOf gives the first port of a Service that leads to Pods of its namespace.
func portOf(live map[string]any) (int32, error) {
	kind, _, _ := unstructured.NestedString(live, "spec", "type")
	selector, _, _ := unstructured.NestedMap(live, "spec", "selector")
	if kind == string(corev1.ServiceTypeExternalName) || len(selector) == 0 {
		return 0, fmt.Errorf("the Service %s leads elsewhere than to Pods of its namespace, and is not called: give it a selector", application.ShutdownService)
	}
	ports, _, _ := unstructured.NestedSlice(live, "spec", "ports")
	if len(ports) == 0 {
		return 0, fmt.Errorf("the Service %s has no port: give it one", application.ShutdownService)
	}
	first, _ := ports[0].(map[string]any)
	port, _ := first["port"].(int64)
	return int32(port), nil //nolint:gosec // the API server has it between 1 and 65535
}

// isGone tells if no workload of the Application is left that is to be deleted: there
// is nothing then to shut down, or all has. What is let go of runs on.
func (s *shutdown) isGone(ctx context.Context) (bool, error) {
	for _, id := range s.app.Inventory {
		if !runsPods(id) || letsGo(s.app, id) {
			continue
		}
		_, live, err := s.read(ctx, id)
		if err != nil || live != nil {
			return false, err
		}
	}
	return true, nil
}

// runsPods tells if an object has Pods: of a kind that nobody knows, it may.
func runsPods(id manifest.ID) bool {
	if known, ok := kindRanks[id.Kind]; ok {
		return known == kindRanks["Pod"]
	}
	switch group := id.GroupVersionKind().Group; group {
	case "":
		return id.Kind == "ReplicationController"
	case "autoscaling", "policy":
		return false
	default:
		return !strings.HasSuffix(group, ".k8s.io")
	}
}

// read gives an object of the Application as it is, nil if there is none.
func (s *shutdown) read(ctx context.Context, id manifest.ID) (manifest.Ref, map[string]any, error) {
	object, err := s.Kinds.Locate(s.app.NamespacedName, id)
	switch {
	case meta.IsNoMatchError(err):
		return manifest.Ref{}, nil, nil
	case err != nil:
		return manifest.Ref{}, nil, fmt.Errorf("find the resource of %s: %w", id, err)
	}
	ref := object.Ref
	ref.ID = id
	marks := application.Marks(s.app.NamespacedName, s.app.UID, id)
	live, err := s.actorFor(s.app).Patch(ctx, ref, nil, nothing)
	switch {
	case apierrors.IsNotFound(err):
		return ref, nil, nil
	case err != nil:
		return ref, nil, fmt.Errorf("read %s: %w", id, err)
	case prove(marks, id, live) != nil:
		return ref, nil, nil //nolint:nilerr // another one of that name
	}
	return ref, live, nil
}

// itself names the Application, where nothing else is spoken of.
func itself(app *application.Application) manifest.ID {
	return manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: app.Namespace, Name: app.Name}
}

func (s *shutdown) graceTime() time.Duration {
	if own := s.app.Wishes.Shutdown.GraceTime; own != nil {
		return *own
	}
	return s.ShutdownDefaults.GraceTime
}

func (s *shutdown) retries() int {
	if own := s.app.Wishes.Shutdown.Retries; own != nil {
		return *own
	}
	return s.ShutdownDefaults.Retries
}

func (s *shutdown) strategy() application.ShutdownStrategy {
	if own := s.app.Wishes.Shutdown.Strategy; own != "" {
		return own
	}
	return s.ShutdownDefaults.Strategy
}
