package reconcile

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// memory is what the loop knows of one Application beyond what is stored. A restarted
// agent begins without it: that costs only time.
type memory struct {
	uid types.UID
	// spec is the digest of the spec of the last pass, empty if events may have been missed
	// since.
	spec    string
	objects map[manifest.ID]*objectMemory
	// plan is that of the last pass, nil before the first.
	plan *plan.Cache
	// published is what the last write stored for people, nil if that is not known.
	published *published
	writes    pacing.StatusWrites
	// pending is what the next write of the status stores, nil if all is stored.
	pending atomic.Pointer[application.Application]
	// recorded: this process has written, or is to write, what was learned.
	recorded bool
	// silentSince is since when the target does not answer, zero if it does.
	silentSince time.Time
	calls       calls
	secrets     secretsMemory
	source      sourceMemory
	// deleted is the Application as it was last seen deleted, with what it held.
	deleted *application.Application
	// contended is the number of objects that are fought about.
	contended atomic.Int64
}

// objectMemory is what the loop knows of one object.
type objectMemory struct {
	// proved is the UID of the object that proved to be ours.
	proved types.UID
	fights pacing.Fights
	// isContended: an outcome has reported the present fights.
	isContended bool
	// refused are the changes that the API server refuses.
	refused pacing.Refusals
	// failures are the writes that failed in a row, lastFailure the verdict on the last.
	failures    pacing.Failures
	lastFailure status.Verdict
}

// calls are those of one attempt to shut an Application down, as far as this process made
// them: a restarted agent asks once more.
type calls struct {
	attempt  int
	deadline time.Time
	failed   int
	next     time.Time
	answered bool
	// message is why the last call failed, empty if it did not.
	message string
}

// isOf reports whether these are the calls of the attempt.
func (c *calls) isOf(record *application.ShutdownRecord) bool {
	return c.attempt == record.Attempt && c.deadline.Equal(record.Deadline.Time)
}

// secretsMemory has the values of the Secrets of hooks, by which they are restored. The
// values go to the target, and nowhere else.
type secretsMemory struct {
	values map[manifest.ID]map[string][]byte
	// checked is when they were last read, for this spec and in this mode, verdicts the
	// result.
	spec     string
	mode     application.Mode
	checked  time.Time
	verdicts map[manifest.ID]status.Verdict
}

// sourceMemory is the source behind a URL, or when to fetch it.
type sourceMemory struct {
	// spec is the digest of the spec for which it was fetched.
	spec, translation string
	failed            int
	next              time.Time
}

// published is what is stored for people, and what it was made from: most passes would make
// the same documents again, of all objects, to find that they are stored.
type published struct {
	// version is that of the ConfigMap that has the documents.
	version string
	learned []map[string]any
	// plan is that of all objects; each had this revision and was seen like this.
	plan      *plan.Cache
	revisions []string
	seen      []manifest.Packed
}

// about returns the memory of one object.
func (m *memory) about(id manifest.ID) *objectMemory {
	if m.objects[id] == nil {
		m.objects[id] = &objectMemory{}
	}
	return m.objects[id]
}

// makePeace forgets fights, refusals and failures of all objects.
func (m *memory) makePeace() {
	for _, known := range m.objects {
		known.fights, known.refused, known.failures = nil, nil, pacing.Failures{}
	}
}

// keep forgets all objects but these.
func (m *memory) keep(ids []manifest.ID) {
	maps.DeleteFunc(m.objects, func(id manifest.ID, _ *objectMemory) bool { return !slices.Contains(ids, id) })
}

// recall returns the Application as it would be stored if nothing were pending.
func (m *memory) recall(stored *application.Application) *application.Application {
	pending := m.pending.Load()
	if pending == nil {
		return stored
	}
	if pending.Status.ClusterName() != stored.Status.ClusterName() {
		m.pending.Store(nil) // the Application was elsewhere meanwhile
		return stored
	}
	recalled := *stored
	recalled.LastApplied, recalled.LastObserved, recalled.Learned = pending.LastApplied, pending.LastObserved, pending.Learned
	recalled.Status, recalled.Inventory, recalled.Adopted = pending.Status, pending.Inventory, pending.Adopted
	recalled.Hooks.Tokens = pending.Hooks.Tokens
	return &recalled
}

// memories are those of all Applications.
type memories struct {
	mu   sync.Mutex
	byID map[types.NamespacedName]*memory
}

// of returns the memory of an Application. What was known of another one of the same name
// is forgotten.
func (m *memories) of(app *application.Application) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byID[app.NamespacedName]
	if known == nil || known.uid != app.UID {
		known = &memory{uid: app.UID, objects: map[manifest.ID]*objectMemory{}}
		known.secrets.values = map[manifest.ID]map[string][]byte{}
		if m.byID == nil {
			m.byID = map[types.NamespacedName]*memory{}
		}
		m.byID[app.NamespacedName] = known
	}
	return known
}

// forget forgets an Application, and returns it as it was last seen deleted.
func (m *memories) forget(name types.NamespacedName) (deleted *application.Application) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byID[name]; known != nil {
		deleted = known.deleted
	}
	delete(m.byID, name)
	return deleted
}

// reset forgets an Application but for the calls to shut it down.
func (m *memories) reset(app *application.Application) *memory {
	calls := m.of(app).calls
	m.forget(app.NamespacedName)
	known := m.of(app)
	known.calls = calls
	return known
}

// each calls do with each memory, under the lock.
func (m *memories) each(do func(types.NamespacedName, *memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, known := range m.byID {
		do(name, known)
	}
}
