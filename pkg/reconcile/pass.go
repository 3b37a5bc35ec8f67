package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// pass is one walk through the loop for one Application.
type pass struct {
	*Reconciler

	app    *application.Application
	memory *memory
	// target is written as whom the Application says.
	target *actor
	// from is where the Application comes from, nil if it was here before.
	from *origin
	now  time.Time
	// spec is the digest of the Application's, former the status that the pass began with.
	spec    string
	former  application.Status
	planned []resource
	// secrets are those of the hooks, which are not observed but read now and then.
	secrets []hookSecret
	// tokens are the digests of theirs that are stored.
	tokens map[application.Hook]string
	// observed, verdicts and holds are those of the planned resources.
	observed []observer.Observation
	verdicts []verdict
	holds    []*application.Hold
	// unclaimed are those of which the hub has not taken note yet.
	unclaimed []bool
	// mended tells of the resources that are on the target as the spec says now.
	mended []bool
	// reverted tells that a drift was repaired.
	reverted bool
	// partly are those of which a part only is: what there is to publish of them.
	partly []map[string]any
	// seen are the objects that were read or written.
	seen []map[string]any
	// kept are the resources that left the spec and are not gone yet.
	kept []held
	// failure is what went wrong with those, lost that the target does not answer.
	failure, lost error
}

func newPass(r *Reconciler, app *application.Application, known *memory, wanted plan) *pass {
	planned := wanted.resources
	if known.spec != wanted.spec {
		known.makePeace() // about another spec: perhaps the field is not observed any more
	}
	return &pass{
		Reconciler: r, app: app, memory: known, target: r.actorFor(app),
		now: r.Now(), spec: wanted.spec, former: app.Status, planned: planned, secrets: wanted.secrets, tokens: app.Hooks.Tokens,
		observed: make([]observer.Observation, len(planned)),
		verdicts: make([]verdict, len(planned)),
		holds:    make([]*application.Hold, len(planned)),
		mended:   make([]bool, len(planned)), unclaimed: make([]bool, len(planned)),
		partly: make([]map[string]any, len(planned)),
	}
}

// observe looks at the objects, and tells if they are known. What cannot be
// watched is a problem of that one object; where nothing can, the cluster does
// not answer, and that is the error: it says nothing about the Application.
func (p *pass) observe() (known bool, unreachable error) {
	observed := p.Observers.Observe(p.app.NamespacedName, p.targets())
	if len(observed) > 0 && !slices.ContainsFunc(observed, func(o observer.Observation) bool { return !unanswered(o.Err) }) {
		return false, observed[0].Err
	}
	known = true
	for i := range p.planned {
		if err := p.planned[i].unserved; err != nil {
			p.observed[i].Err = err
			p.fail(i, err)
			continue
		}
		p.observed[i], observed = observed[0], observed[1:]
		switch err := p.observed[i].Err; {
		case errors.Is(err, observer.ErrNotSynced):
			known = false
		case err != nil:
			p.fail(i, err)
		}
		p.holds[i] = p.heldAs(i, p.summary(i).Hold)
		p.observed[i].Stale = p.observed[i].Stale || p.observed[i].Exists() && p.mayRelease(i)
	}
	return known, nil
}

// mayRelease tells if something may be left of a former spec: it was changed
// while no agent looked, or could not be carried out. Observers do not see what
// has left the spec; of a change that this process has seen, they look at the
// object anew, but once only.
func (p *pass) mayRelease(i int) bool {
	unlooked := p.former.ObservedSpec != p.spec && (p.former.ObservedSpec != p.memory.spec || p.memory.spec == "")
	return (unlooked || p.formerReason(i) != "") && p.entryOf(p.app.LastObserved.Objects(), i) != nil
}

// entryOf gives the entry of a planned resource in one of the documents.
func (p *pass) entryOf(document []map[string]any, i int) map[string]any {
	return entryOf(document, p.planned[i].manifest(), p.app.Namespace)
}

func (p *pass) targets() []observer.Target {
	targets := make([]observer.Target, 0, len(p.planned))
	for i := range p.planned {
		if p.planned[i].unserved == nil {
			targets = append(targets, p.planned[i].Target)
		}
	}
	return targets
}

// start lets the events of the Application flow again.
func (p *pass) start() {
	p.Observers.Start(p.app.NamespacedName, p.targets(), p.seen)
}

// calculate is step 4. What is held under the name of a resource that is not
// served is not known to have left the spec.
func (p *pass) calculate() Delta {
	held := slices.DeleteFunc(slices.Clone(p.app.Inventory), p.isUnserved)
	for _, stray := range p.Observers.Strays(p.app.NamespacedName) {
		if p.mayHaveMade(stray) && !slices.ContainsFunc(held, func(held manifest.ID) bool { return sameObject(held, stray.ID) }) {
			held = append(held, stray.ID)
		}
	}
	held = slices.DeleteFunc(held, p.isHookSecret) // also where Secrets are watched for somebody else
	return Calculate(idsOf(p.planned), p.observed, held)
}

// mayHaveMade tells if the Application could have created the stray. Anybody may
// write its name on objects, and each of them would be read in each pass.
func (p *pass) mayHaveMade(stray observer.Stray) bool {
	summary, _ := stray.Summary.(Summary)
	return summary.OwnerUID == p.app.UID && (p.Scope == mutate.ClusterScope || stray.Namespace == p.Namespaces.Of(p.app.Namespace))
}

func (p *pass) isUnserved(held manifest.ID) bool {
	return slices.ContainsFunc(p.planned, func(wanted resource) bool { return wanted.unserved != nil && wanted.is(held) })
}

// is tells if what is held is this resource. Where nobody knows whether its kind
// is in namespaces, a namespace that the manifest does not say may be any.
func (p *resource) is(held manifest.ID) bool {
	if p.unserved != nil && p.Namespace == "" {
		held.Namespace = ""
	}
	return sameObject(p.ID, held)
}

// enforces tells if anything may be written to the target.
func (p *pass) enforces() bool { return p.app.Wishes.Mode == application.Enforce }

// claim writes what is about to be held, before it is created, so that nothing
// is ever created that a restarted agent does not know of. While the hub does not
// answer, that has to wait; what is held already does not.
func (p *pass) claim(ctx context.Context, delta *Delta) error {
	if !p.enforces() {
		return nil
	}
	held := slices.Clone(p.app.Inventory)
	for _, i := range delta.New {
		if id := p.planned[i].ID; !slices.Contains(held, id) {
			held = append(held, id)
		}
	}
	for i := range p.secrets {
		if id := p.secrets[i].ID; !slices.Contains(held, id) {
			held = append(held, id)
		}
	}
	if p.app.Finalized && len(held) == len(p.app.Inventory) {
		return nil
	}
	if !p.hub.rests(p.Now()) {
		err := p.claimed(ctx, held)
		if !unanswered(err) {
			return err
		}
	}
	delta.New = slices.DeleteFunc(delta.New, p.waitsForHub)
	for i := range p.secrets {
		p.secrets[i].unclaimed = !slices.Contains(p.app.Inventory, p.secrets[i].ID)
	}
	return nil
}

// waitsForHub tells if nothing that is stored says that the object is held.
func (p *pass) waitsForHub(i int) bool {
	if slices.Contains(p.app.Inventory, p.planned[i].ID) {
		return false
	}
	p.unclaimed[i] = true
	p.fail(i, errUnclaimed)
	return true
}

// errUnclaimed is the error of an object that cannot be created now.
var errUnclaimed = errors.New("the hub does not answer, and has to take note of an object before it is created: it is tried again")

func (p *pass) claimed(ctx context.Context, held []manifest.ID) error {
	former, finalized := p.app.Inventory, p.app.Finalized
	p.app.Inventory, p.app.Finalized = held, true
	err := p.from.around(p.app, func() error {
		if p.app.Status.State == "" {
			p.app.Status.State = application.StateCreating
		}
		return p.update(ctx, p.app)
	})
	if err != nil {
		p.app.Inventory, p.app.Finalized = former, finalized
	}
	return err
}

// act does what the delta says (step 5): it deletes, creates and patches. One
// object that fails does not hold up the others.
func (p *pass) act(ctx context.Context, delta Delta) {
	if p.enforces() {
		p.kept, p.failure = p.deleteAll(ctx, p.app, p.target, delta.Deleted)
	} else {
		p.kept = unlooked(delta.Deleted)
	}
	p.hookSecrets(ctx)
	for _, i := range delta.New {
		p.do(i, func() { p.create(ctx, i, maxTries) })
	}
	for _, i := range delta.Modified {
		p.do(i, func() { p.mend(ctx, i, p.observed[i].Live.Fields(), maxTries) })
	}
	for i := range p.planned {
		if p.observed[i].Err == nil && !slices.Contains(delta.New, i) && !slices.Contains(delta.Modified, i) {
			p.mended[i] = true
			p.memory.object(p.planned[i].ID).proved = p.observed[i].UID // its marks are observed
		}
	}
}

// do acts on an object, unless the target did not answer about another one: each of
// them would be waited for.
func (p *pass) do(i int, act func()) {
	if p.lost != nil {
		p.fail(i, p.lost)
		return
	}
	act()
	if err := p.verdicts[i].err; unconnected(err) {
		p.lost = err
	}
}

// took takes note of an object as the API server has it now, and learns from it
// (step 6).
func (p *pass) took(i int, live map[string]any) {
	planned := &p.planned[i]
	p.observed[i].Projection = manifest.Pack(planned.Schema.Project(planned.desired(), live))
	p.observed[i].Summary = Summarise(live)
	p.seen = append(p.seen, live)
	if err := planned.learn(live); err != nil {
		p.fail(i, err)
	}
}

// summary is what is known of an object beyond its fields.
func (p *pass) summary(i int) Summary {
	summary, _ := p.observed[i].Summary.(Summary) // the zero value of an object that is not there
	return summary
}

// sinceSeen is the time since the event that is acted on, 0 if there was none.
func (p *pass) sinceSeen(i int) time.Duration {
	seen := p.observed[i].Seen
	if seen.IsZero() {
		return 0
	}
	return p.Now().Sub(seen)
}

// heldAs gives what is kept of a hold on an object that asks for it.
func (p *pass) heldAs(i int, asked string) *application.Hold {
	former, _ := p.former.Object(p.planned[i].ID)
	_, hold := heldUntil(p.app.Wishes, former.Hold, asked, p.MaxHold, p.now)
	return hold
}

// formerReason is what was wrong with an object when the pass began.
func (p *pass) formerReason(i int) string {
	former, _ := p.former.Object(p.planned[i].ID)
	return former.Reason
}
