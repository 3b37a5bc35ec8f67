package reconcile

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Between two writes of an Application's status are leastInterval at least. What changes
// neither state nor condition waits the longer the more often there is something: each write takes from
// hub and agent what a repair takes.
const (
	leastInterval = time.Second
	mostInterval  = 5 * time.Second
)

// memory is what the loop knows of one Application beyond what is stored. A
// restarted agent begins without: all it costs is time.
type memory struct {
	uid types.UID
	// spec is the digest of that which the last pass was about.
	spec    string
	objects map[manifest.ID]*objectMemory
	// planned is what the last pass wanted, nil before the first.
	planned *keptPlan
	// published is what the last write has stored for people, nil if that is not to be
	// gone by.
	published *published
	// state and conditions are those that are stored, nil if nobody has looked.
	state      application.State
	conditions []metav1.Condition
	// written is when the status was written last, and interval how long what changes neither
	// state nor condition has to wait after it; pending is what is to be written then.
	written  time.Time
	interval time.Duration
	pending  *application.Application
	// turn is when what is to be written of repairs has its turn among all Applications.
	turn time.Time
	// recorded: this process has written, or is to write, what was learned.
	recorded bool
	// waits tells whoever asks that something is pending.
	waits atomic.Bool
	// silentSince is since when the target does not answer, zero if it does.
	silentSince time.Time
	// calls are those to an Application that is to shut down.
	calls calls
	// secrets are the values of the hooks' Secrets, checked when this was last.
	secrets secretsMemory
	// fetched is what was behind the Application's URL.
	fetched fetched
	// leaving is the Application as it was deleted last: what is left of it.
	leaving *application.Application
	// contended counts the objects that are fought about, for whoever asks.
	contended atomic.Int64
}

// objectMemory is what the loop knows of one object.
type objectMemory struct {
	// proved is the UID of the object that proved to be ours.
	proved types.UID
	fights fights
	// contended: it was told that the object is fought about.
	contended bool
	// refused are the changes that the API server will not take.
	refused refusals
	// failed are the writes that it has refused in a row for other reasons.
	failed failures
}

// failures are those in a row. The queue waits longer each time; the events of
// whoever brings the drift about do not, and must not set the pace.
type failures struct {
	count int
	until time.Time
	last  verdict
}

// add takes note of one more, with what there is to say of it.
func (f *failures) add(last verdict, now time.Time) {
	f.count++
	f.until, f.last = now.Add(pause(f.count-fastRepairs)), last
}

// rests tells if it is not time yet to write again, and what there is to say until
// then.
func (f *failures) rests(now time.Time) (resting verdict, rests bool) {
	if !f.until.After(now) {
		return verdict{}, false
	}
	resting = f.last
	resting.err, resting.again = nil, f.until
	return resting, true
}

// memories are those of all Applications.
type memories struct {
	mu   sync.Mutex
	byID map[types.NamespacedName]*memory
}

// of gives the memory of an Application. What was known of another one of the
// same name is forgotten.
func (m *memories) of(app *application.Application) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byID[app.NamespacedName]
	if known == nil || known.uid != app.UID {
		known = &memory{uid: app.UID, objects: map[manifest.ID]*objectMemory{}}
		if m.byID == nil {
			m.byID = map[types.NamespacedName]*memory{}
		}
		m.byID[app.NamespacedName] = known
	}
	return known
}

// leavingOf gives an Application of that name as it was deleted last.
func (m *memories) leavingOf(name types.NamespacedName) *application.Application {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byID[name]; known != nil {
		return known.leaving
	}
	return nil
}

func (m *memories) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, name)
}

// leave forgets an Application but for what it was asked.
func (m *memories) leave(app *application.Application) {
	calls := m.of(app).calls
	m.forget(app.NamespacedName)
	m.of(app).calls = calls
}

// object gives the memory of one object.
func (m *memory) object(id manifest.ID) *objectMemory {
	if m.objects[id] == nil {
		m.objects[id] = &objectMemory{}
	}
	return m.objects[id]
}

// makePeace forgets all fights, what was refused, and what failed.
func (m *memory) makePeace() {
	for _, object := range m.objects {
		object.fights, object.refused, object.failed = nil, nil, failures{}
	}
}

// keep forgets all objects but these.
func (m *memory) keep(ids []manifest.ID) {
	for id := range m.objects {
		if !slices.Contains(ids, id) {
			delete(m.objects, id)
		}
	}
}

// pend keeps what is to be written, stored what need not be any more.
func (m *memory) pend(app *application.Application) {
	m.pending = app
	m.waits.Store(true)
}

func (m *memory) stored() {
	m.pending = nil
	m.waits.Store(false)
}

// recall puts what was not written yet in the place of what is stored.
func (m *memory) recall(app *application.Application) {
	if m.pending == nil {
		return
	}
	if m.pending.Status.ClusterName() != app.Status.ClusterName() {
		m.stored() // the Application was elsewhere meanwhile
		return
	}
	app.LastApplied, app.LastObserved, app.Learned = m.pending.LastApplied, m.pending.LastObserved, m.pending.Learned
	app.Status, app.Inventory, app.Adopted = m.pending.Status, m.pending.Inventory, m.pending.Adopted
	app.Hooks.Tokens = m.pending.Hooks.Tokens
}

// queue has what there is to write of a repair wait for its turn, unless something
// waits already.
func (m *memory) queue(turns *turns, now time.Time) {
	if m.pending == nil {
		m.turn = now.Add(turns.wait(now))
	}
}

// due gives how long the next write, of this status, has to wait, 0 if it need not.
func (m *memory) due(status application.Status, now time.Time) time.Duration {
	next := m.written.Add(leastInterval)
	if m.state == status.State && slices.EqualFunc(m.conditions, status.Conditions, sayTheSame) {
		next = m.written.Add(m.interval)
		if m.turn.After(next) {
			next = m.turn
		}
	}
	return max(0, next.Sub(now))
}

// isStored takes note of what is stored of the status.
func (m *memory) isStored(status application.Status) {
	m.state, m.conditions = status.State, slices.Clone(status.Conditions)
}

// wrote takes note of a write of the status.
func (m *memory) wrote(status application.Status, now time.Time) {
	next := leastInterval
	if now.Sub(m.written) < 2*m.interval { // it was waited for, or nearly so
		next = min(2*m.interval, mostInterval)
	}
	m.isStored(status)
	m.written, m.interval, m.turn = now, next, time.Time{}
}

func sayTheSame(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// Pending gives the Applications of which something is not stored yet, and has it
// stored at the next pass of each: the hub is back.
func (r *Reconciler) Pending() []types.NamespacedName {
	r.hub.answered(nil, r.Now())
	r.memories.mu.Lock()
	defer r.memories.mu.Unlock()
	var pending []types.NamespacedName
	for name, known := range r.memories.byID {
		if known.waits.Load() {
			pending = append(pending, name)
		}
	}
	return pending
}

// Contended counts the objects that somebody else changes again and again.
func (r *Reconciler) Contended() int {
	r.memories.mu.Lock()
	defer r.memories.mu.Unlock()
	count := 0
	for _, known := range r.memories.byID {
		count += int(known.contended.Load())
	}
	return count
}
