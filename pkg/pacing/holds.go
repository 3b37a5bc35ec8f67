package pacing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// HeldUntil returns until when an object is not repaired, the zero time if it may be now, and what the
// status keeps of the hold on it, nil if that is nothing.
//
// Former is the hold in the status, asked the annotation of the object, "" if it has none, and limit the
// longest hold that the agent allows.
func HeldUntil(wishes application.Wishes, former *application.Hold, asked string, limit time.Duration, now time.Time) (until time.Time, hold *application.Hold) {
	if wishes.HoldUntil.After(now) {
		until = wishes.HoldUntil
	}
	if wishes.DenyHolds {
		return until, nil
	}
	hold = followHold(former, asked, limit, now)
	if hold != nil && asked != "" && hold.Until.After(now) && hold.Until.After(until) {
		until = hold.Until.Time
	}
	return until, hold
}

// followHold follows the hold on one object: its limit counts from when it was first seen, and once more
// from its one renewal. It is remembered for as long: to remove the annotation and add it again must not
// be another renewal.
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
	// The renewal is used: the hold may become shorter, and not longer.
	shortened := *former
	shortened.Asked = asked
	if wanted.Before(former.Until.Time) {
		shortened.Until = metav1.NewTime(wanted)
	}
	return &shortened
}
