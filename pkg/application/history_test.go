package application_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

var midnight = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// hotFix is a drift of some fields, seen this long after midnight. An empty repaired means
// that it was not reverted.
func hotFix(seen time.Duration, repaired string, fields ...string) application.Drift {
	d := application.Drift{
		Object: manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Manager: "kubectl-set",
		Seen: metav1.NewTime(midnight.Add(seen)), Repaired: repaired,
	}
	if repaired != "" {
		d.After = &metav1.Duration{Duration: time.Second}
	}
	for _, path := range fields {
		d.Fields = append(d.Fields, application.DriftedField{Path: path})
	}
	return d
}

// lasting returns the drift with the duration until its repair, and the number of its
// occurrences.
func lasting(d application.Drift, after time.Duration, count int) application.Drift {
	d.Count = count
	if after > 0 {
		d.After = &metav1.Duration{Duration: after}
	}
	return d
}

// A drift that is seen, not reverted, and finally repaired is one drift.
func TestRemember(t *testing.T) {
	const left, reverted = "", "DriftReverted"
	for _, c := range []struct {
		why string
		// held: the object has an unreverted drift when the last one is seen.
		held  bool
		seen  []application.Drift
		wants []application.Drift
	}{
		{
			"a hot fix that is repaired when its hold is over", true,
			[]application.Drift{hotFix(0, left, "image"), hotFix(time.Hour, reverted, "image")},
			[]application.Drift{lasting(hotFix(0, reverted, "image"), time.Hour+time.Second, 1)},
		},
		{
			"one that somebody took back by hand, and another one", false,
			[]application.Drift{hotFix(0, left, "image"), hotFix(time.Hour, reverted, "image")},
			[]application.Drift{lasting(hotFix(time.Hour, reverted, "image"), time.Second, 2)},
		},
		{
			"one that comes back after each repair", false,
			[]application.Drift{hotFix(0, reverted, "image"), hotFix(time.Hour, reverted, "image")},
			[]application.Drift{lasting(hotFix(time.Hour, reverted, "image"), time.Second, 2)},
		},
		{
			"a hot fix of what was repaired before: it has come twice, however it goes on", true,
			[]application.Drift{hotFix(0, reverted, "image"), hotFix(time.Hour, left, "image"), hotFix(2*time.Hour, reverted, "image")},
			[]application.Drift{lasting(hotFix(time.Hour, reverted, "image"), time.Hour+time.Second, 2)},
		},
		{
			"one to which another change was added: both are taken back at once", true,
			[]application.Drift{hotFix(0, left, "image"), hotFix(time.Minute, left, "image", "replicas"), hotFix(time.Hour, reverted, "image", "replicas")},
			[]application.Drift{
				lasting(hotFix(time.Minute, reverted, "image", "replicas"), time.Hour-time.Minute+time.Second, 1),
				lasting(hotFix(0, reverted, "image"), time.Hour+time.Second, 1),
			},
		},
		{
			"one of another field is left as it is", true,
			[]application.Drift{hotFix(0, left, "image"), hotFix(time.Hour, reverted, "replicas")},
			[]application.Drift{lasting(hotFix(time.Hour, reverted, "replicas"), time.Second, 1), lasting(hotFix(0, left, "image"), 0, 1)},
		},
	} {
		var status application.Status
		for i, drift := range c.seen {
			if c.held && i == len(c.seen)-1 {
				status.Objects = []application.ObjectStatus{{ID: drift.Object, Reason: "Held"}}
			}
			before := append([]application.Drift{}, status.Drifts...)
			former := status.Drifts
			status.Remember(drift)
			check.Equal(t, c.why+": the former status", before, append([]application.Drift{}, former...))
		}
		check.Equal(t, c.why, c.wants, status.Drifts)
	}
}
