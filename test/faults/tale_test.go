package faults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// point identifies a tale.
type point struct {
	block, scenario string
	// mode is the fault, and place where it happens: call 7, event 3.
	mode, place string
}

// String returns "crash points, shrink: killed before, at call 7".
func (p point) String() string {
	text := fmt.Sprintf("%s, %s: %s", p.block, p.scenario, p.mode)
	if p.place != "" {
		text += ", at " + p.place
	}
	return text
}

// tale is a trial: a scenario with a fault.
type tale struct {
	point

	scenario scenario
	// hold: a killed agent stays stopped until the user has said the next sentence.
	hold bool
	// fresh: the agent starts with the tale.
	fresh bool
	// call and event decide the faults; number counts the calls about the Application.
	call  func(a *app, by *agent, number int, call proxy.Call) *proxy.Fault
	event func(proxy.Event) proxy.Verdict
	// after runs after the nth sentence, while the agent works.
	after func(ctx context.Context, a *app, sentence int) error
	// met reports whether the fault happened.
	met func() bool
}

// told is a tale that was played.
type told struct {
	*tale

	app   *app
	err   error
	calls string
}

// play plays a tale. It leaves the Application in place.
func (l *lane) play(ctx context.Context, t *tale) told {
	a, began := l.newApp(), time.Now()
	marks := map[*lane]int{}
	for _, each := range l.both() {
		marks[each] = each.proxy.Mark()
	}
	err := l.tell(ctx, t, a)
	for _, each := range l.both() {
		each.intercept(nil)
		each.proxy.Filter(nil)
	}
	if l.hubFailed.Swap(false) {
		for name, at := range l.settled {
			if at.After(began) { // its status writes wait for the hub
				l.settled[name] = time.Now().Add(late)
			}
		}
	}
	if err == nil {
		l.settled[a.NamespacedName] = time.Now().Add(late)
		if a.rival != nil {
			l.settled[a.rival.NamespacedName] = time.Now().Add(late)
		}
	}
	var calls []proxy.Call
	for _, each := range l.both() {
		calls = append(calls, each.proxy.Since(marks[each])...)
	}
	slices.SortStableFunc(calls, func(a, b proxy.Call) int { return a.At.Compare(b.At) })
	return told{t, a, err, lines(calls)}
}

// late is how late a status may be written after all else. A write that changes no
// condition waits up to five seconds, and longer on a busy machine.
const late = 9 * time.Second

func (l *lane) tell(ctx context.Context, t *tale, a *app) error {
	if t.scenario.two {
		if err := l.addSecond(ctx); err != nil {
			return err
		}
	}
	if t.fresh {
		if err := l.agent.kill(); err != nil {
			return err
		}
	}
	l.arm(t, a)
	held := false
	for i, sentence := range t.scenario.life {
		var err error
		if held, err = l.say(ctx, t, a, i, sentence); err != nil {
			return fmt.Errorf("sentence %d: %w", i+1, err)
		}
	}
	if !held {
		return nil
	}
	if _, err := l.say(ctx, &tale{}, a, len(t.scenario.life), t.scenario.meanwhile); err != nil {
		return fmt.Errorf("meanwhile: %w", err)
	}
	return nil
}

// say performs a sentence, and waits until all is as it says, unless the agent is to stay
// stopped.
func (l *lane) say(ctx context.Context, t *tale, a *app, number int, sentence sentence) (held bool, err error) {
	if err := sentence(ctx, a); err != nil {
		return false, err
	}
	if t.after != nil {
		if err := t.after(ctx, a, number); err != nil {
			return false, fmt.Errorf("somebody else: %w", err)
		}
	}
	if a.uid != "" && !a.bystander {
		if err := a.meetsBystander(ctx); err != nil {
			return false, err
		}
	}
	if err := l.start(); err != nil {
		return false, err
	}
	return l.reachAll(ctx, a, t.hold && t.scenario.meanwhile != nil)
}

// reachAll waits until all is as the user last asked for. It starts a stopped agent,
// unless it is to be held: then it only waits for its death.
func (l *lane) reachAll(ctx context.Context, a *app, hold bool) (held bool, err error) {
	err = l.await(ctx, func(ctx context.Context) error {
		if slices.ContainsFunc(l.agents(), (*agent).down) {
			if held = hold; hold {
				return nil
			}
			return errors.Join(errors.New("the agent was down"), l.start())
		}
		return a.stands(ctx)
	})
	return held, err
}

// meetsBystander makes a foreign object with a copy of the marks of an object of the Application, as the API server
// copies them.
func (a *app) meetsBystander(ctx context.Context) error {
	a.bystander = true
	another := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: a.Namespace, Name: a.named("service").Name}
	marks := application.Marks(a.NamespacedName, a.uid, another)
	theirs := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name + "-theirs", Labels: marks.Labels, Annotations: marks.Annotations},
		Data:       map[string]string{"key": "theirs"},
	}
	if _, err := env.CoreV1().ConfigMaps(a.Namespace).Create(ctx, theirs, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		return fmt.Errorf("create an object of another client: %w", err)
	}
	return nil
}

// arm lets the calls and events about the Application meet the faults of the tale.
func (l *lane) arm(t *tale, a *app) {
	var mu sync.Mutex
	number := 0
	meet := func(by *agent) func(proxy.Call) *proxy.Fault {
		return func(call proxy.Call) *proxy.Fault {
			if t.call == nil {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			at := 0
			if call.Number > 0 && a.owns(call.Subject()) {
				number++
				at = number
			}
			fault := t.call(a, by, at, call)
			if fault != nil && fault.Do == nil && call.Resource == kit.ConfigMaps.Resource && call.Subject() == a.Name {
				l.hubFailed.Store(true)
			}
			return fault
		}
	}
	for _, each := range l.both() {
		each.intercept(meet(each.agent))
		each.proxy.Filter(func(event proxy.Event) proxy.Verdict {
			if t.event == nil || !a.owns(event.Name) {
				return proxy.Pass
			}
			return t.event(event)
		})
	}
}

// batch is the number of tales in a lane before they are judged. Their Applications
// stay until then, and nothing may be written for them, whatever happens to the agent.
const batch = 8

// closeBatch judges the tales played since its last call, and removes their objects.
func (l *lane) closeBatch(ctx context.Context, played []told) ([]checker.Violation, error) {
	var last time.Time
	for _, at := range l.settled {
		if at.After(last) {
			last = at
		}
	}
	if err := sleep(ctx, time.Until(last.Add(still))); err != nil {
		return nil, err
	}
	places := map[string][]string{l.name: {l.namespace}, l.name + second: {l.namespace + second}}
	then := checker.Case{Places: places, Settled: l.settled, Lag: lag, Warming: env.warming}
	var err error
	if then.Dump, err = l.dump(ctx); err != nil {
		return nil, err
	}
	then.Until = time.Now()
	now := checker.Case{Places: places, Lag: lag, Warming: env.warming}
	if err := l.clear(ctx, played); err != nil {
		return nil, err
	}
	if now.Dump, err = l.dump(ctx); err != nil {
		return nil, err
	}
	if now.Requests, err = l.audit.FindNaming(naming(l.places()...)); err != nil {
		return nil, err
	}
	for _, request := range now.Requests {
		if request.Ended.Before(then.Until) {
			then.Requests = append(then.Requests, request)
		}
	}
	violations := then.Judge()
	for _, violation := range now.Judge() {
		if !slices.Contains(violations, violation) {
			violations = append(violations, violation)
		}
	}
	l.settled = map[types.NamespacedName]time.Time{}
	l.audit, err = kit.MarkAudit(env.Cluster)
	return violations, err
}

const (
	// still is how long nothing may be written.
	still = time.Second
	// lag is how long an agent may act on an outdated state.
	lag = 10 * time.Second
)

// clear deletes, as the user, all Applications and objects of the tales, and waits
// until they are gone.
func (l *lane) clear(ctx context.Context, played []told) error {
	if err := l.start(); err != nil {
		return err
	}
	var apps []*app
	for _, each := range played {
		apps = append(apps, each.app)
		if each.app.rival != nil {
			apps = append(apps, each.app.rival)
		}
	}
	if err := each(apps, func(a *app) error { return a.delete(ctx) }); err != nil {
		return err
	}
	err := l.await(ctx, func(ctx context.Context) error { return each(apps, func(a *app) error { return a.gone(ctx) }) })
	for _, song := range l.songs {
		err = errors.Join(err, song.undefine(ctx))
	}
	l.songs = nil
	return err
}

// dump returns all objects of the kinds that the Applications have.
func (l *lane) dump(ctx context.Context) ([]map[string]any, error) {
	var all []map[string]any
	kinds := []gvr.GroupVersionResource{kit.ConfigMaps, kit.Services, kit.Deployments}
	for _, song := range l.songs {
		kinds = append(kinds, song.resource())
	}
	for _, place := range l.places() {
		for _, kind := range kinds {
			found, err := env.Dynamic.Resource(kind).Namespace(place).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("read %s of %s: %w", kind.Resource, place, err)
			}
			for i := range found.Items {
				all = append(all, found.Items[i].Object)
			}
		}
	}
	return all, nil
}

// playTales plays tales in all lanes at once, judges them, and reports their number.
func playTales(t *testing.T, lanes []*lane, tales []*tale) {
	t.Helper()
	queue := make(chan *tale, len(tales))
	for _, each := range tales {
		queue <- each
	}
	close(queue)
	start, counted := time.Now(), &tally{}
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() {
			for more := true; more && t.Context().Err() == nil && !isEnough(t); {
				var played []told
				for len(played) < batch {
					var each *tale
					if each, more = <-queue; !more || isEnough(t) {
						break
					}
					now := l.play(t.Context(), each)
					if now.err != nil && env.only != nil {
						counted.record(t, &now, nil)
						return
					}
					played = append(played, now)
				}
				l.judge(t, counted, played)
			}
		})
	}
	all.Wait()
	t.Logf("%s in %s", counted, time.Since(start).Round(time.Second))
	if counted.met == 0 && len(tales) > 0 && !t.Failed() {
		t.Error("no fault was met: nothing was tested")
	}
}

// judge judges a batch.
func (l *lane) judge(t *testing.T, counted *tally, played []told) {
	t.Helper()
	if len(played) == 0 {
		return
	}
	violations, err := l.closeBatch(t.Context(), played)
	if err != nil {
		t.Errorf("%s: %v", l.name, err)
	}
	for i := range played {
		counted.record(t, &played[i], violations)
	}
	for _, violation := range violations {
		if violation.App.Name == "" {
			t.Errorf("%s", violation)
		}
	}
}

// isEnough reports whether no more trials are to begin: after a failure of chosen points.
func isEnough(t *testing.T) bool { return t.Failed() && env.only != nil }

// tally counts tales.
type tally struct {
	mu                 sync.Mutex
	played, met, wrong int
}

// String returns "210 tales, ...".
func (c *tally) String() string {
	return fmt.Sprintf("%d tales, of which something went wrong in %d, and %d ended otherwise than they should", c.played, c.met, c.wrong)
}

// record judges the outcome of a tale.
func (c *tally) record(t *testing.T, played *told, violations []checker.Violation) {
	t.Helper()
	var its []string
	if played.err != nil {
		its = append(its, played.err.Error())
	}
	for _, violation := range violations {
		if belongs(violation.App.Name, played.app.Name) {
			its = append(its, violation.String())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.played++
	if played.met() {
		c.met++
	}
	if len(its) > 0 {
		c.wrong++
		t.Errorf("%s, of %s:\n%s\nthe calls were\n%s", played.point, played.app, strings.Join(its, "\n"), played.calls)
	}
}

// seedOf returns the seed of the random choices at a point. KRAKE_TEST_SEED changes the
// seed of every point.
func seedOf(at point) uint64 {
	sum := fnv.New64a()
	fmt.Fprint(sum, at, env.seed)
	return sum.Sum64()
}

// chance returns the random source of a point.
func chance(at point) *rand.Rand {
	return rand.New(rand.NewPCG(seedOf(at), 0))
}
