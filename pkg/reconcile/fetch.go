package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// Sources fetches what is behind the URLs of Applications, and translates it.
type Sources interface {
	// Translate gives the resources of a template or an archive behind a URL. That it
	// was fetched and is not legal is ErrTranslation, that a rule forbids to fetch it, or
	// to take it, is ErrSource.
	Translate(ctx context.Context, source application.Source) ([]any, error)
}

// ErrTranslation is the error of a template or an archive that is not legal.
var ErrTranslation = errors.New("it cannot be translated")

// ErrSource is the error of a URL that must not be fetched, or of what is there and
// must not be taken: another digest, too much of it.
var ErrSource = errors.New("it is not taken")

// What could not be fetched is tried again: longer after, the longer it has failed.
const (
	leastFetchPause = 10 * time.Second
	mostFetchPause  = 10 * time.Minute
)

// fetched is what was behind a URL, or why that is not known.
type fetched struct {
	// spec is the digest of the Application's when it was asked for.
	spec, translation string
	failed            int
	next              time.Time
}

// fetch has the spec of an Application whose resources are behind a URL hold them
// (step 0), and tells if it does. It asks once for a spec: what is there later is
// seen with another spec. Nobody has looked at the rights of the user to what is
// there: it is carried out as a service account or not at all. While it cannot be
// had, the objects of the former spec stay as they are.
func (r *Reconciler) fetch(ctx context.Context, app *application.Application, known *memory, from *origin) (holds bool, result ctrl.Result, err error) {
	source, isURL, refusal := mutate.SourceOf(app.Spec)
	switch {
	case !isURL || refusal != nil:
		return true, ctrl.Result{}, nil //nolint:nilerr // what is refused is told by the plan
	case !r.RequireAccount, r.Sources == nil && app.Spec.Fetched == "":
		from.undo(app)
		return false, ctrl.Result{}, r.refused(ctx, app, errNoSources)
	case app.Spec.Fetched != "":
		return true, ctrl.Result{}, nil
	}
	memory, spec := &known.fetched, app.Spec.Digest()
	if memory.spec != spec {
		*memory = fetched{spec: spec}
	}
	if wait := memory.next.Sub(r.Now()); wait > 0 {
		return false, ctrl.Result{RequeueAfter: wait}, nil
	}
	if memory.translation == "" {
		translation, err := r.translate(ctx, source)
		if err != nil {
			from.undo(app)
			result, err := r.notFetched(ctx, app, memory, err)
			return false, result, err
		}
		memory.translation = translation
	}
	app.Spec.Fetched = memory.translation
	return true, ctrl.Result{}, nil
}

// errNoSources is the error of a URL where nothing is fetched.
var errNoSources = fmt.Errorf(
	"%w: this agent fetches nothing from URLs: put the text, or the archive, in its place, or have an administrator start it with --url-source-hosts and --require-service-account", errRefused)

// translate gives the resources behind a URL as they are stored.
func (r *Reconciler) translate(ctx context.Context, source application.Source) (string, error) {
	resources, err := r.Sources.Translate(ctx, source)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(resources); err != nil {
		return "", fmt.Errorf("%w: %w", ErrTranslation, err)
	}
	if _, err := manifest.Decode(text.Bytes()); err != nil {
		return "", fmt.Errorf("%w: %w", ErrTranslation, err)
	}
	return string(bytes.TrimSpace(text.Bytes())), nil
}

// notFetched says why nothing is done yet, and when it is tried again.
func (r *Reconciler) notFetched(ctx context.Context, app *application.Application, memory *fetched, why error) (ctrl.Result, error) {
	pause := min(leastFetchPause<<min(memory.failed, 8), mostFetchPause)
	found := verdict{reason: reasonNotFetched, message: cut(why.Error())} // no API server has said it
	switch {
	case errors.Is(why, ErrTranslation):
		found.reason, pause = reasonInvalidTosca, mostFetchPause
	case errors.Is(why, ErrSource):
		found.reason, pause = reasonRefused, mostFetchPause
	}
	memory.failed++
	memory.next = r.Now().Add(pause)
	spec := app.Status.ObservedSpec
	r.conclude(app, findings{verdicts: []verdict{found}})
	app.Status.ObservedSpec = spec // nothing was brought to this one
	if found.reason == reasonNotFetched {
		app.Status.State = application.StateTranslating
		r.set(app, application.StalledCondition, metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonProgressing})
	}
	return ctrl.Result{RequeueAfter: pause}, r.update(ctx, app)
}
