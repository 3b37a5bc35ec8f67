package observer

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// inspection is an object and the views that observe it.
type inspection struct {
	// live has at least the required fields.
	live  *unstructured.Unstructured
	views []view
	// fingerprint is the fingerprint of all observed fields, 0 without their text.
	fingerprint fingerprint
}

// view is one owner's view of one object.
type view struct {
	owner  Owner
	target Target
	last   Observation
	// reported is the last summary that was reported to the owner.
	reported any
}

// observes reports whether a view observes the field or a part of it.
func (i inspection) observes(path ...string) bool {
	for at := range i.views {
		if i.views[at].target.Marked.Observes(path...) {
			return true
		}
	}
	return false
}

// inspect makes the record of an object, with the observation of each view. whole is called if the
// object differs.
func (i *inspector) inspect(in inspection, whole func() Whole) *record {
	summary, err := i.summarise(in.live)
	seen := &record{
		namespace: in.live.GetNamespace(), name: in.live.GetName(), uid: in.live.GetUID(), version: in.live.GetResourceVersion(),
		owner: i.ownerOf(in.live), summary: summary,
	}
	now := i.options.Now()
	for at := range in.views {
		v := &in.views[at]
		observation, same := v.unchanged(in.fingerprint, in.live, now)
		if !same {
			observation = i.compare(v.target, in.live, whole, now)
			observation.fingerprint = in.fingerprint
		}
		observation.Summary, observation.Err = summary, cmp.Or(observation.Err, err)
		seen.views = append(seen.views, seenBy{observation, v.owner, v.target.Revision})
	}
	return seen
}

// inspectFor inspects an object that an owner has read, for its view alone.
func (i *inspector) inspectFor(target Target, live *unstructured.Unstructured) Observation {
	observation := i.compare(target, live, func() Whole { return wholeOf(live.Object) }, i.options.Now())
	summary, err := i.summarise(live)
	observation.Summary, observation.Err = summary, cmp.Or(observation.Err, err)
	return observation
}

// compare compares an object with a target. If they differ, the observation has the whole object.
func (i *inspector) compare(target Target, live *unstructured.Unstructured, whole func() Whole, now time.Time) Observation {
	observation := Observation{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Seen: now}
	observation.Err = i.guard(live, func() {
		desired := target.Desired.Fields()
		observation.Projection = manifest.Pack(target.Schema.Project(desired, live.Object))
		if len(target.Marked.Compare(desired, live.Object)) > 0 {
			observation.Live = whole()
		}
	})
	return observation
}

// unchanged returns the last observation of the view, if nothing differed then and no observed
// field has changed since.
func (v *view) unchanged(seen fingerprint, live *unstructured.Unstructured, now time.Time) (Observation, bool) {
	if seen == 0 || seen != v.last.fingerprint || v.last.Differs() || v.last.UID != live.GetUID() {
		return Observation{}, false
	}
	same := v.last
	same.ResourceVersion, same.Seen = live.GetResourceVersion(), now
	return same, true
}
