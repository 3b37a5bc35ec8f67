package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// The pause after a source could not be fetched grows with each failure.
const (
	leastFetchPause = 10 * time.Second
	mostFetchPause  = 10 * time.Minute
)

// fetchPhase resolves a URL source (step 0). It fetches once for each spec: a later content of the
// URL needs another spec. The user's rights to the fetched resources were not checked. They are
// therefore written as a service account, or not at all. While the fetch fails, the objects of the
// former spec stay unchanged.
type fetchPhase struct {
	sources      Sources
	statusWriter statusWriter
}

func (f fetchPhase) run(ctx context.Context, p *pass) (progress, error) {
	source, isURL, refusal := mutate.SourceOf(p.app.Spec)
	switch {
	case !isURL || refusal != nil:
		return goOn(), nil //nolint:nilerr // the plan reports a refusal
	case !f.statusWriter.placement.requireAccount, f.sources == nil && p.app.Spec.Fetched == "":
		return endWith(0), f.statusWriter.refuse(ctx, p.early(), p.memory, errNoSources)
	case p.app.Spec.Fetched != "":
		return goOn(), nil
	}
	known, now := &p.memory.source, f.statusWriter.hub.now()
	if known.spec != p.spec {
		*known = sourceMemory{spec: p.spec}
	}
	if wait := known.next.Sub(now); wait > 0 {
		return endWith(wait), nil
	}
	if known.translation == "" {
		translation, err := f.translate(ctx, source)
		if err != nil {
			found, pause := verdictOnSource(err, known.failed)
			known.failed++
			known.next = f.statusWriter.hub.now().Add(pause)
			return endWith(pause), f.statusWriter.fail(ctx, p.early(), p.memory, found)
		}
		known.translation = translation
	}
	p.app.Spec.Fetched = known.translation
	return goOn(), nil
}

// translate returns the resources behind a URL in their stored form.
func (f fetchPhase) translate(ctx context.Context, source application.Source) (string, error) {
	resources, err := f.sources.Translate(ctx, source)
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

// verdictOnSource returns the verdict on a failed fetch after so many failures, and the pause
// before the next try.
func verdictOnSource(why error, failed int) (found status.Verdict, pause time.Duration) {
	found = status.Verdict{Reason: status.NotFetched, Message: apierror.Cut(why.Error())} // not from an API server
	switch {
	case errors.Is(why, ErrTranslation):
		found.Reason = status.InvalidTosca
		return found, mostFetchPause
	case errors.Is(why, ErrSource):
		found.Reason = status.Refused
		return found, mostFetchPause
	}
	return found, min(leastFetchPause<<min(failed, 8), mostFetchPause)
}
