package status

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Drift is a drift of one object.
type Drift struct {
	Object      manifest.ID
	Differences schema.Differences
	// Removed are the fields of differences that are not observed, see [Outcome].
	Removed []schema.Path
	Culprit blame.Culprit
	Seen    time.Time
	// Repaired is the action that repaired it, empty if it was not repaired.
	Repaired Action
	// Took is the time from Seen to the repair.
	Took time.Duration
}

// maxFields bounds the fields of one drift in the history.
const maxFields = 8

// Entry returns the entry for the drift in the history of the status.
func (d Drift) Entry() application.Drift {
	entry := application.Drift{
		Object: d.Object, Seen: metav1.NewTime(d.Seen.Truncate(time.Second)), Repaired: string(d.Repaired),
		Manager: d.Culprit.Manager, Subresource: d.Culprit.Subresource, Operation: d.Culprit.Operation,
	}
	if !d.Culprit.Time.IsZero() {
		entry.Changed = new(metav1.NewTime(d.Culprit.Time))
	}
	if d.Took > 0 {
		entry.After = &metav1.Duration{Duration: d.Took.Round(time.Millisecond)}
	}
	details := d.Differences.Details()
	for _, difference := range details[:min(len(details), maxFields)] {
		entry.Fields = append(entry.Fields, application.DriftedField{
			Path:    apierror.Cut(difference.Path.String()),
			Want:    publishable(d.Object.Kind, difference.Path, difference.Want),
			Have:    publishable(d.Object.Kind, difference.Path, difference.Have),
			Removed: slices.ContainsFunc(d.Removed, func(path schema.Path) bool { return slices.Equal(path, difference.Path) }),
		})
	}
	return entry
}

// IsRemembered reports whether the history has this drift as an unrepaired one.
func IsRemembered(history []application.Drift, entry application.Drift) bool {
	return slices.ContainsFunc(history, func(former application.Drift) bool {
		return former.Repaired == "" && former.SameAs(entry)
	})
}

// publishable returns a short value unchanged, and the digest of a long one. It returns nil for a
// value that may be private, because readers can guess a short secret from its digest. It also
// returns nil for annotations and labels: a status has many readers, and is stored.
func publishable(kind string, path schema.Path, value any) any {
	isFreeText := func(step schema.Step) bool { return step.Field == "annotations" || step.Field == "labels" }
	if value == nil || slices.ContainsFunc(path, isFreeText) || IsPrivate(kind, path, value) {
		return nil
	}
	switch scalar := value.(type) {
	case bool, int64, float64:
		return value
	case string:
		if len(scalar) <= maxValue {
			return value
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:6])
}
