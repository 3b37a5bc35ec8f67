package checker

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// turn is an accepted write of an object, with the states before and after.
type turn struct {
	*Request

	before, after object
}

// life is the history of one object, from its creation to its deletion.
type life struct {
	key   key
	uid   string
	turns []turn
	// end is the deletion that removed the object, nil if it exists or its end is
	// unknown.
	end *Request
}

func (l *life) created() *Request {
	if first := l.turns[0].Request; first.Verb == "create" {
		return first
	}
	return nil
}

// world is the history in the audit log, by the place of the objects and by their
// lives.
type world struct {
	lives []*life
	apps  map[types.NamespacedName][]*version
}

// version is the state of an Application between two writes. A write takes effect
// between its receipt and its answer. So from is the earliest time at which the version
// may be known, and until the latest time at which the previous one may be.
type version struct {
	from, until time.Time

	app *application.Application
	// wanted has the objects of the version, nil if they are unknown.
	wanted map[string]object
	cm     object
	turn   turn
}

// replay builds the histories from the accepted writes.
func replay(requests []Request) *world {
	byUID := map[string]*life{}
	w := &world{apps: map[types.NamespacedName][]*version{}}
	for i := range requests {
		r := &requests[i]
		if !isWrite(r) || r.Object.Resource == "events" || !r.IsAccepted() {
			continue
		}
		after := answerOf(r)
		uid := text(after, "metadata", "uid")
		if after == nil {
			uid = deletedBy(r)
		}
		if uid == "" {
			continue // such as a review, which is no object
		}
		l := byUID[uid]
		if l == nil {
			l = &life{key: keyOf(r), uid: uid}
			byUID[uid] = l
			w.lives = append(w.lives, l)
		}
		if after == nil {
			l.end = r
			continue
		}
		l.turns = append(l.turns, turn{Request: r, after: after})
	}
	w.lives = slices.DeleteFunc(w.lives, func(l *life) bool { return len(l.turns) == 0 })
	for _, l := range w.lives {
		l.order()
	}
	slices.SortStableFunc(w.lives, func(a, b *life) int {
		return cmp.Or(strings.Compare(a.key.String(), b.key.String()), cmp.Compare(versionOf(a.turns[0].after), versionOf(b.turns[0].after)))
	})
	for _, l := range w.lives {
		w.readApp(l)
	}
	return w
}

// order sorts the writes by resourceVersion, because answers overtake each other.
func (l *life) order() {
	slices.SortStableFunc(l.turns, func(a, b turn) int { return cmp.Compare(versionOf(a.after), versionOf(b.after)) })
	for i := 1; i < len(l.turns); i++ {
		l.turns[i].before = l.turns[i-1].after
	}
	last := l.turns[len(l.turns)-1]
	if l.end == nil && text(last.after, "metadata", "deletionTimestamp") != "" && len(list(last.after, "metadata", "finalizers")) == 0 {
		l.end = last.Request // the last finalizer was removed
	}
}

// readApp records each version of an Application.
func (w *world) readApp(l *life) {
	if l.key.group != "" || l.key.resource != "configmaps" {
		return
	}
	name := types.NamespacedName{Namespace: l.key.namespace, Name: l.key.name}
	for _, turn := range l.turns {
		cm := &corev1.ConfigMap{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(turn.after, cm) != nil || !application.IsApplication(cm) {
			continue
		}
		app, err := application.Read(cm)
		if err != nil {
			continue // of an unknown version
		}
		w.apps[name] = append(w.apps[name], &version{from: turn.Received, until: turn.Ended, app: app, wanted: wantedBy(app), cm: turn.after, turn: turn})
	}
	if versions := w.apps[name]; l.end != nil && len(versions) > 0 {
		gone := *versions[len(versions)-1].app
		gone.Deleted = true
		w.apps[name] = append(versions, &version{from: l.end.Received, until: l.end.Ended, app: &gone, turn: turn{Request: l.end}})
	}
}

// wantedBy returns the objects of an Application, by [whatIs].
func wantedBy(app *application.Application) map[string]object {
	documents, err := manifest.Decode([]byte(app.Spec.Manifest))
	if err != nil {
		return nil
	}
	wanted := map[string]object{}
	for _, document := range documents {
		if resource, ok := document.(object); ok {
			wanted[whatIs(resource)] = resource
		}
	}
	return wanted
}

// whatIs identifies an object by kind and name. The namespace is left out, because the
// agent's cluster decides it.
func whatIs(o object) string { return text(o, "kind") + " " + text(o, "metadata", "name") }

// wants reports whether the Application wants the object on the cluster.
func (v *version) wants(cluster, what string) bool {
	_, wanted := v.wanted[what]
	return wanted && !v.app.Deleted && v.app.Cluster == cluster
}

// versionsIn returns the versions of an Application that any client may have known at
// any time between the two.
func (w *world) versionsIn(name types.NamespacedName, from, to time.Time) []*version {
	var found []*version
	versions := w.apps[name]
	for i, v := range versions {
		if v.from.After(to) || i+1 < len(versions) && !versions[i+1].until.After(from) {
			continue
		}
		found = append(found, v)
	}
	return found
}

// ownerOf returns the Application that the marks of an object prove.
func ownerOf(o object) (owner types.NamespacedName, ok bool) {
	if o == nil {
		return owner, false
	}
	return application.OwnerOf(o)
}

func versionOf(o object) uint64 {
	number, err := strconv.ParseUint(text(o, "metadata", "resourceVersion"), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// value returns the value at a path of an object, or nil.
func value(o any, path ...string) any {
	for _, name := range path {
		fields, _ := o.(object)
		o = fields[name]
	}
	return o
}

func text(o object, path ...string) string {
	s, _ := value(o, path...).(string)
	return s
}

func list(o object, path ...string) []any {
	l, _ := value(o, path...).([]any)
	return l
}

func fields(o object, path ...string) object {
	f, _ := value(o, path...).(object)
	return f
}
