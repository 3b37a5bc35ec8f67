package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// drift is one drift, as it is told and remembered.
type drift struct {
	differences schema.Differences
	culprit     blame.Culprit
	// repaired is what was done about it, empty if nothing was.
	repaired Action
	took     time.Duration
	// verdict is why nothing was done.
	verdict verdict
}

// Bounds of one drift in the history.
const (
	maxFields = 8
	maxValue  = 64 // bytes
)

// remember puts a drift into the history. One that is not repaired is told and
// remembered once.
func (p *pass) remember(i int, d drift) {
	entry := p.entry(i, d)
	if d.repaired == "" {
		if slices.ContainsFunc(p.app.Status.Drifts, func(former application.Drift) bool {
			return former.Repaired == "" && former.SameAs(entry)
		}) {
			return
		}
		p.report(i, Outcome{
			Action: Detected, Object: p.planned[i].ID, Paths: pathsOf(d.differences), Culprit: d.culprit, Reason: p.whyLeft(i, d),
		})
	}
	p.app.Status.Remember(entry)
}

func (p *pass) whyLeft(i int, d drift) string {
	if d.verdict.reason != "" {
		return d.verdict.reason
	}
	return p.verdicts[i].reason
}

func (p *pass) entry(i int, d drift) application.Drift {
	entry := p.driftOf(p.planned[i].ID, d)
	if seen := p.observed[i].Seen; !seen.IsZero() {
		entry.Seen = metav1.NewTime(seen.Truncate(time.Second))
	}
	return entry
}

// driftOf gives what is remembered of a drift that was seen in this pass.
func (p *pass) driftOf(id manifest.ID, d drift) application.Drift {
	entry := application.Drift{
		Object:      id,
		Manager:     d.culprit.Manager,
		Subresource: d.culprit.Subresource,
		Operation:   d.culprit.Operation,
		Seen:        metav1.NewTime(p.now.Truncate(time.Second)),
		Repaired:    string(d.repaired),
	}
	if !d.culprit.Time.IsZero() {
		changed := metav1.NewTime(d.culprit.Time)
		entry.Changed = &changed
	}
	if d.took > 0 {
		entry.After = &metav1.Duration{Duration: d.took.Round(time.Millisecond)}
	}
	for _, difference := range d.differences[:min(len(d.differences), maxFields)] {
		entry.Fields = append(entry.Fields, application.DriftedField{
			Path: cut(difference.Path.String()), Want: shown(id.Kind, difference.Path, difference.Want), Have: shown(id.Kind, difference.Path, difference.Have),
		})
	}
	return entry
}

// shown gives a value that is short, and the digest of another. Of what may be a
// secret it gives nothing: a short one is found by its digest. Nor does it of any
// annotation or label: a status has many readers, and stays.
func shown(kind string, path schema.Path, value any) any {
	if value == nil || isFreeText(path) || IsPrivate(kind, path, value) {
		return nil
	}
	if text, isText := value.(string); isScalar(value) && (!isText || len(text) <= maxValue) {
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:6])
}

func isFreeText(path schema.Path) bool {
	return slices.ContainsFunc(path, func(step schema.Step) bool { return step.Field == "annotations" || step.Field == "labels" })
}

func isScalar(value any) bool {
	switch value.(type) {
	case string, bool, int64, float64:
		return true
	}
	return false
}
