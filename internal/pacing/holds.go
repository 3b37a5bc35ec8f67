package pacing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// HeldUntil returns until when an object is held, or the zero time if it may be repaired now. It
// also returns the hold for the status, or nil.
//
// former is the hold in the status. asked is the annotation of the object, "" without one. limit is
// the longest hold that the agent allows.
func HeldUntil(settings application.Settings, former *application.Hold, asked string, limit time.Duration, now time.Time) (until time.Time, hold *application.Hold) {
	if settings.HoldUntil.After(now) {
		until = settings.HoldUntil
	}
	if settings.DenyHolds {
		return until, nil
	}
	hold = followHold(former, asked, limit, now)
	if hold != nil && asked != "" && hold.Until.After(now) && hold.Until.After(until) {
		until = hold.Until.Time
	}
	return until, hold
}

// followHold computes the hold on one object. Its limit counts from the first observation, and once
// more from its only renewal. The hold is remembered for that long, so that removing and adding the
// annotation is no further renewal.
func followHold(former *application.Hold, asked string, limit time.Duration, now time.Time) *application.Hold {
	wanted, err := application.ParseHold(asked)
	over := former == nil || !now.Before(former.Since.Add(limit))
	switch {
	case asked == "" && over:
		return nil
	case asked == "" || err != nil || former != nil && former.Asked == asked:
		return former
	case former == nil || !former.Renewed:
		if latest := now.Add(limit); wanted.After(latest) {
			wanted = latest
		}
		return &application.Hold{
			Until: metav1.NewTime(wanted.Truncate(time.Second)), Asked: asked,
			Since: metav1.NewTime(now.Truncate(time.Second)), Renewed: former != nil,
		}
	}
	// The renewal is used: the hold may become shorter, but not longer.
	shortened := *former
	shortened.Asked = asked
	if wanted.Before(former.Until.Time) {
		shortened.Until = metav1.NewTime(wanted)
	}
	return &shortened
}
