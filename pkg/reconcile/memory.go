package reconcile

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// memory is the loop's knowledge of one Application beyond the stored state. A restarted agent
// begins without it, which only costs time.
type memory struct {
	uid types.UID
	// spec is the digest of the spec of the last pass, empty if events may have been missed
	// since.
	spec    string
	objects map[manifest.ID]*objectMemory
	// plan is the plan of the last pass, nil before the first.
	plan *plan.Cache
	// published is the content of the last write of the documents, nil if it is not known.
	published *published
	writes    pacing.StatusWrites
	// pending is the Application that the next status write stores, nil if all is stored.
	pending atomic.Pointer[application.Application]
	// recorded reports that this process has written the learned values, or has them pending.
	recorded bool
	// silentSince is the time since which the target does not answer, zero if it does.
	silentSince time.Time
	calls       calls
	secrets     secretsMemory
	source      sourceMemory
	// deleted is the last version of the Application that was deleted, with its inventory.
	deleted *application.Application
	// failure is the reason for which the Application fails, as it was last reported. It is empty
	// if the Application does not fail.
	failure string
	// restraint is why drift is not reverted, as it was last seen; nil before.
	restraint *string
	// contended is the number of objects with contention.
	contended atomic.Int64
}

// objectMemory is the loop's knowledge of one object.
type objectMemory struct {
	// proved is the UID of the object that proved to be ours.
	proved      types.UID
	contentions pacing.Contentions
	// isContended reports that an outcome has reported the present contention.
	isContended bool
	// refused are the changes that the API server refuses.
	refused *pacing.Refusals
	// fill is the last look at a Secret whose values are those of another one.
	fill fillMemory
	// failures are the failed writes in a row. lastFailure is the verdict on the last one.
	failures    pacing.Failures
	lastFailure status.Verdict
}

// calls are the calls of this process in one attempt of a shutdown. A restarted agent calls again.
type calls struct {
	attempt  int
	deadline time.Time
	failed   int
	next     time.Time
	answered bool
	// message is the error of the last call, empty if it succeeded.
	message string
}

// isOf reports whether the calls belong to the attempt.
func (c *calls) isOf(record *application.ShutdownRecord) bool {
	return c.attempt == record.Attempt && c.deadline.Equal(record.Deadline.Time)
}

// secretsMemory has the values of the Secrets of hooks, to restore them. The values go only to the
// target.
type secretsMemory struct {
	values map[manifest.ID]map[string][]byte
	// checked is the time of the last read for this spec and in this mode. verdicts are its
	// results.
	spec     string
	mode     application.Mode
	checked  time.Time
	verdicts map[manifest.ID]status.Verdict
}

// sourceMemory is the translated source of a URL, or the time of the next fetch.
type sourceMemory struct {
	// spec is the digest of the spec that the fetch was for.
	spec, translation string
	failed            int
	next              time.Time
}

// published is the stored content of the documents, with its inputs. Without it, most passes would
// make the same documents again from all objects.
type published struct {
	// version is the resourceVersion of the ConfigMap with the documents.
	version string
	learned []map[string]any
	// plan is the plan of all objects. Each object had this revision and this observation.
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

// resetBackoffs forgets contention, refusals and failures of all objects.
func (m *memory) resetBackoffs() {
	for _, known := range m.objects {
		known.contentions, known.refused, known.failures = nil, nil, pacing.Failures{}
	}
}

// keep forgets all objects except these.
func (m *memory) keep(ids []manifest.ID) {
	maps.DeleteFunc(m.objects, func(id manifest.ID, _ *objectMemory) bool { return !slices.Contains(ids, id) })
}

// recall returns the Application with the pending status.
func (m *memory) recall(stored *application.Application) *application.Application {
	pending := m.pending.Load()
	if pending == nil {
		return stored
	}
	if pending.Status.ClusterName() != stored.Status.ClusterName() {
		m.pending.Store(nil) // the Application was elsewhere in the meantime
		return stored
	}
	recalled := *stored
	recalled.LastApplied, recalled.LastObserved, recalled.Learned = pending.LastApplied, pending.LastObserved, pending.Learned
	recalled.Status, recalled.Inventory, recalled.Adopted = pending.Status, pending.Inventory, pending.Adopted
	recalled.Hooks.Tokens = pending.Hooks.Tokens
	return &recalled
}

// memories are the memories of all Applications.
type memories struct {
	mu   sync.Mutex
	byID map[types.NamespacedName]*memory
}

// of returns the memory of an Application. It forgets a former Application of the same name.
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

// forget forgets an Application, and returns its last version that was deleted.
func (m *memories) forget(name types.NamespacedName) (deleted *application.Application) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byID[name]; known != nil {
		deleted = known.deleted
	}
	delete(m.byID, name)
	return deleted
}

// reset forgets an Application, except the calls of its shutdown.
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
