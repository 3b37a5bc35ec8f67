package observer

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// view is one owner's view of one object.
type view struct {
	owner  Owner
	target Target
	last   Observation
	// reported is the last summary that was reported to the owner.
	reported any
}

// inspect makes the record of an object, with the observation of each view.
func (i *inspector) inspect(live *unstructured.Unstructured, views []view) *record {
	summary, err := i.summarise(live)
	seen := &record{
		namespace: live.GetNamespace(), name: live.GetName(), uid: live.GetUID(), version: live.GetResourceVersion(),
		owner: i.ownerOf(live), summary: summary,
	}
	now := i.options.Now()
	for _, v := range views {
		observation := i.compare(v.target, live, now)
		observation.Summary, observation.Err = summary, cmp.Or(observation.Err, err)
		seen.views = append(seen.views, seenBy{observation, v.owner, v.target.Revision})
	}
	return seen
}

// inspectFor inspects an object that an owner has read, for its view alone.
func (i *inspector) inspectFor(target Target, live *unstructured.Unstructured) Observation {
	observation := i.compare(target, live, i.options.Now())
	summary, err := i.summarise(live)
	observation.Summary, observation.Err = summary, cmp.Or(observation.Err, err)
	return observation
}

// compare compares an object with a target. If they differ, the observation has the whole object.
func (i *inspector) compare(target Target, live *unstructured.Unstructured, now time.Time) Observation {
	observation := Observation{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Seen: now}
	observation.Err = i.guard(live, func() {
		desired := target.Desired.Fields()
		observation.Projection = manifest.Pack(target.Schema.Project(desired, live.Object))
		if len(target.Marked.Compare(desired, live.Object)) > 0 {
			observation.Live = wholeOf(live.Object)
		}
	})
	return observation
}
