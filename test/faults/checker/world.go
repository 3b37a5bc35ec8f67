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

// turn is an accepted write of an object, with what it was before and is then.
type turn struct {
	*Request

	before, after object
}

// life is that of one object, from its creation to its end.
type life struct {
	key   key
	uid   string
	turns []turn
	// end is the deletion that removed it, nil if it is there or nobody knows.
	end *Request
}

func (l *life) created() *Request {
	if first := l.turns[0].Request; first.Verb == "create" {
		return first
	}
	return nil
}

// world is what the audit log says has happened, in the order of the objects' places
// and of their lives.
type world struct {
	lives []*life
	apps  map[types.NamespacedName][]*version
}

// version is an Application as it was from one write to the next. Some time passes from
// when a request is received until it is answered: from is the earliest time from which
// the version may be known, until the latest at which the former one may be.
type version struct {
	from, until time.Time

	app *application.Application
	// wanted are its objects, nil if nothing says what they are.
	wanted map[string]object
	cm     object
	turn   turn
}

// replay takes the accepted writes apart.
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

// order brings the writes into the order in which they were done: answers overtake
// each other, versions do not.
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

// readApp takes note of each version of an Application.
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
			continue // of a version that nobody knows
		}
		w.apps[name] = append(w.apps[name], &version{from: turn.Received, until: turn.Ended, app: app, wanted: wantedBy(app), cm: turn.after, turn: turn})
	}
	if versions := w.apps[name]; l.end != nil && len(versions) > 0 {
		gone := *versions[len(versions)-1].app
		gone.Deleted = true
		w.apps[name] = append(versions, &version{from: l.end.Received, until: l.end.Ended, app: &gone, turn: turn{Request: l.end}})
	}
}

// wantedBy gives the objects of an Application by what they are.
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

// whatIs names an object by kind and name: where an Application has its objects is
// its agent's business.
func whatIs(o object) string { return text(o, "kind") + " " + text(o, "metadata", "name") }

// wants tells if the Application wants the object on the cluster.
func (v *version) wants(cluster, what string) bool {
	_, wanted := v.wanted[what]
	return wanted && !v.app.Deleted && v.app.Cluster == cluster
}

// versionsIn gives the versions of an Application that somebody may have gone by at any
// time between the two.
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

// ownerOf gives the Application that an object proves to belong to.
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

// value walks into an object, and gives nil where there is nothing.
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
