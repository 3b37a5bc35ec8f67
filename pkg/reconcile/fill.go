package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// fillMemory is the result of the last look at a Secret that is filled, so that not every pass reads it.
type fillMemory struct {
	// at is the time of the look, with these annotations of the Application.
	at          time.Time
	annotations map[string]string
	observed    observer.Observation
	verdict     status.Verdict
	isSettled   bool
	part        map[string]any
	// version is the resourceVersion of the Secret after the look.
	version string
}

// filler reads the values of Secrets from their sources, before the Secrets are written. The Secrets are read once a minute and not
// watched, and so are their sources: a client that watches Secrets sees all of them. The values go only to the target.
type filler struct {
	clusters Clusters
	account  Account
	target   Cluster
}

// into puts the values into the plan of the object. An object without sources has none.
func (f filler) into(ctx context.Context, o *object) error {
	if o.sources == nil {
		return nil
	}
	values, err := f.values(ctx, o)
	if err != nil {
		return err
	}
	return o.plan.Fill(values)
}

// values returns the data of the sources of a Secret. The last source of a key wins.
func (f filler) values(ctx context.Context, o *object) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range o.sources {
		ref := manifest.Ref{ID: sourceOf(f.account, name), Resource: corev1.SchemeGroupVersion.WithResource(string(corev1.ResourceSecrets))}
		if err := f.clusters.MayRead(ctx, f.account, ref); err != nil {
			return nil, err
		}
		source, err := f.target.Patch(ctx, ref, nil, readOnly)
		if apierrors.IsNotFound(err) {
			return nil, noValuesError{ref}
		}
		if err != nil {
			return nil, err
		}
		data, _ := source["data"].(map[string]any)
		maps.Copy(values, data)
	}
	return values, nil
}

// sourceOf returns the Secret of a name in the namespace of an Application's account, which is the Application's.
func sourceOf(account Account, name string) manifest.ID {
	return manifest.ID{APIVersion: "v1", Kind: "Secret", Namespace: account.Namespace, Name: name}
}

// sourcesFor returns the sources of the values of an object, nil if it has none. The error is ErrRefused.
func sourcesFor(app *application.Application, account Account, o *plan.Object) ([]string, error) {
	if len(app.Settings.ValuesFrom) == 0 || o.Kind != "Secret" {
		return nil, nil
	}
	id, err := manifest.Identify(o.Manifest()) // with the namespace of the manifest
	if err != nil {
		return nil, err
	}
	sources := application.SourcesFor(app.Settings.ValuesFrom, id)
	isItself := func(name string) bool { return plan.IsSame(sourceOf(account, name), o.ID) }
	switch {
	case sources != nil && account == (Account{}):
		return nil, errNoReader
	case slices.ContainsFunc(sources, isItself):
		return nil, errOwnSource
	}
	return sources, nil
}

// isWatched reports whether observers watch the object.
func (o *object) isWatched() bool { return o.plan.Unserved == nil && o.sources == nil }

// remember keeps the result of a look.
func (o *object) remember() {
	known := &o.memory.fill
	known.at, known.annotations = o.inputs.now, o.inputs.annotations
	known.observed, known.verdict, known.isSettled, known.part = o.observed, o.verdict, o.isSettled, o.part
	known.observed.Seen = time.Time{}
}

// recall restores the result of the last look.
func (o *object) recall() {
	if o.isFillDue() {
		return
	}
	known := &o.memory.fill
	o.observed, o.verdict, o.isSettled, o.part = known.observed, known.verdict, known.isSettled, known.part
	o.hold = o.holdFor(o.summary().Hold)
}

// isFillDue reports whether the Secret has to be read in this pass.
func (o *object) isFillDue() bool {
	known := &o.memory.fill
	again := known.verdict.Again
	return known.at.IsZero() || o.inputs.isNewSpec || !maps.Equal(known.annotations, o.inputs.annotations) ||
		!o.inputs.now.Before(o.fillDue()) || !again.IsZero() && !again.After(o.inputs.now)
}

// fillDue returns when to read the Secret again, zero for never.
func (o *object) fillDue() time.Time {
	if o.sources == nil || o.memory.fill.at.IsZero() {
		return time.Time{}
	}
	return o.memory.fill.at.Add(secretsInterval)
}

// seeDeletion records that a Secret which is filled was deleted, because no observer has seen it.
func (o *object) seeDeletion() {
	if o.sources != nil && o.hasDrifted() {
		o.observed.Seen = o.inputs.now
	}
}

// isAsLeft reports whether a Secret is filled and has not been written since this process looked at it. Another value is then a new value
// of its source, and no drift.
func (o *object) isAsLeft(live map[string]any) bool {
	left := o.memory.fill.version
	return o.sources != nil && (left == "" || left == versionOf(live))
}
