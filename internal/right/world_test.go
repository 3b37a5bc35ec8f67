package right

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// The Leases of the tests, and their target.
const (
	cluster     = "c"
	hubLease    = "krake-cluster-" + cluster
	targetLease = "krake-agent-" + cluster
	ourTarget   = types.UID("this target")
	ours        = "agent" // the identity of the agent under test
)

var (
	errRefused = errors.New("connection refused")
	leases     = coordinationv1.Resource("leases")
)

// server stores Leases as an API server does: a write names the version on which it is based.
type server struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*coordinationv1.Lease
	next  int
	// weather determines the fate of a request, by its sender and verb. Its error is the error
	// of the request. With answerOnly, the request takes effect and only its answer is lost.
	weather func(ctx context.Context, identity, verb string) (answerOnly bool, err error)
	written int
	asked   []time.Time
}

func newServer() *server {
	return &server{byKey: map[types.NamespacedName]*coordinationv1.Lease{}}
}

// link is one agent's connection to a server.
type link struct {
	*server

	identity string
}

func (l link) Leases(namespace string) coordinationv1client.LeaseInterface {
	return client{link: l, namespace: namespace}
}

// client is the part of the interface that the agent uses.
type client struct {
	coordinationv1client.LeaseInterface
	link

	namespace string
}

func (c client) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return c.request(ctx, "get", func() (*coordinationv1.Lease, error) { return c.server.get(c.namespace, name) })
}

func (c client) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return c.request(ctx, "create", func() (*coordinationv1.Lease, error) { return c.server.create(l) })
}

func (c client) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return c.request(ctx, "update", func() (*coordinationv1.Lease, error) { return c.server.update(l) })
}

func (c client) request(ctx context.Context, verb string, do func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	c.mu.Lock()
	weather := c.weather
	c.asked = append(c.asked, time.Now())
	c.mu.Unlock()
	if weather == nil {
		return do()
	}
	answerOnly, err := weather(ctx, c.identity, verb)
	if err != nil && !answerOnly {
		return nil, err
	}
	if slow := slow(0); errors.As(err, &slow) {
		return slow.serve(ctx, do)
	}
	found, failure := do()
	if stop := stopped(nil); errors.As(err, &stop) {
		stop()
		return found, failure
	}
	return found, cmp.Or(err, failure)
}

// stopped is no failure: the process stops after its request took effect, and reads the answer
// when it continues.
type stopped func()

func (stopped) Error() string { return "stopped" }

// slow is no failure: the server carries the request out after this time, even if the client no longer waits.
type slow time.Duration

func (slow) Error() string { return "slow" }

func (s slow) serve(ctx context.Context, do func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	var found *coordinationv1.Lease
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		pass(time.Duration(s))
		found, err = do()
	}()
	select {
	case <-answered:
		return found, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) get(namespace, name string) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byKey[types.NamespacedName{Namespace: namespace, Name: name}]; found != nil {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(leases, name)
}

func (s *server) create(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[keyOf(l)] != nil {
		return nil, apierrors.NewAlreadyExists(leases, l.Name)
	}
	l = l.DeepCopy()
	s.next++
	l.UID = types.UID("uid-" + strconv.Itoa(s.next))
	return s.putLocked(l), nil
}

func (s *server) update(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch found := s.byKey[keyOf(l)]; {
	case found == nil:
		return nil, apierrors.NewNotFound(leases, l.Name)
	case found.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(leases, l.Name, errors.New("the object has been modified"))
	}
	return s.putLocked(l.DeepCopy()), nil
}

func (s *server) putLocked(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.next++
	l.ResourceVersion = strconv.Itoa(s.next)
	s.byKey[keyOf(l)] = l
	s.written++
	return l.DeepCopy()
}

func (s *server) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

func (s *server) requests() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func keyOf(l *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: l.Namespace, Name: l.Name}
}

// edit changes a Lease as an administrator or another agent.
func (s *server) edit(t *testing.T, name string, how func(*coordinationv1.Lease)) {
	t.Helper()
	found, err := s.get(application.AgentsNamespace, name)
	if apierrors.IsNotFound(err) {
		found, err = s.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: application.AgentsNamespace, Name: name}})
	}
	check.Must(t, err)
	how(found)
	_, err = s.update(found)
	check.Must(t, err)
}

type snapshot struct {
	next  int
	byKey map[types.NamespacedName]*coordinationv1.Lease
}

func (s *server) copied() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return snapshot{s.next, maps.Clone(s.byKey)}
}

func (s *server) restore(former snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.byKey = former.next, former.byKey
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, types.NamespacedName{Namespace: application.AgentsNamespace, Name: name})
}

func (s *server) lease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	found, err := s.get(application.AgentsNamespace, name)
	check.Must(t, err)
	return found
}

func (s *server) holder(t *testing.T, name string) string {
	t.Helper()
	return ptr.Deref(s.lease(t, name).Spec.HolderIdentity, "")
}

func (s *server) setWeather(w func(ctx context.Context, identity, verb string) (bool, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weather = w
}

// down refuses all requests. swallowing never answers them. slowed carries out writes late. clear answers them.
func (s *server) down() {
	s.setWeather(func(context.Context, string, string) (bool, error) { return false, errRefused })
}

func (s *server) swallowing() {
	s.setWeather(func(ctx context.Context, _, _ string) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	})
}

func (s *server) slowed(d time.Duration) {
	s.setWeather(func(_ context.Context, _, verb string) (bool, error) {
		if verb == "get" {
			return false, nil
		}
		return true, slow(d)
	})
}

// cut drops all requests of one agent, as if it was killed.
func (s *server) cut(identity string) {
	s.setWeather(func(ctx context.Context, by, _ string) (bool, error) {
		if by != identity {
			return false, nil
		}
		<-ctx.Done()
		return false, ctx.Err()
	})
}

func (s *server) clear() { s.setWeather(nil) }

type world struct {
	hub, target *server
}

func newWorld() *world { return &world{hub: newServer(), target: newServer()} }

func (w *world) cut(identity string) {
	w.hub.cut(identity)
	w.target.cut(identity)
}

type agent struct {
	*Leadership

	stop  context.CancelFunc
	ended chan error
	gone  chan struct{}

	mu      sync.Mutex
	changes []string
}

func (w *world) start(t *testing.T, identity string, edits ...func(*Options)) *agent {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	a := &agent{stop: stop, ended: make(chan error, 1), gone: make(chan struct{})}
	options := Options{
		Cluster:      cluster,
		Namespace:    application.AgentsNamespace,
		Identity:     identity,
		LeaseOptions: LeaseOptions{Election: Election{Elect: true}},
		Target:       link{server: w.target, identity: identity},
		Hub:          link{server: w.hub, identity: identity},
		TargetUID:    func(context.Context) (types.UID, error) { return ourTarget, nil },
		Logger:       logr.Discard(),
	}
	for _, edit := range edits {
		edit(&options)
	}
	a.Leadership = New(options)
	go func() {
		defer close(a.gone)
		a.ended <- a.Run(ctx, a.note)
	}()
	t.Cleanup(func() {
		stop()
		<-a.gone
	})
	return a
}

func (a *agent) note(c Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes = append(a.changes, c.String())
}

func (a *agent) told() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.changes)
}

func (a *agent) checkTold(t *testing.T, want ...string) {
	t.Helper()
	check.Equal(t, "what was told", want, a.told())
}

// end asks the agent to end, and returns the result of its Run.
func (a *agent) end() error {
	a.stop()
	return <-a.ended
}

func (a *agent) awaitLoss(t *testing.T) {
	t.Helper()
	select {
	case err := <-a.ended:
		check.Equal(t, "Run", ErrLost, err, cmpopts.EquateErrors())
	case <-time.After(time.Hour):
		t.Fatalf("Run does not end, and the agent %s", a.stands())
	}
}

// awaitActing returns the time until the agent acts. 0 means at once.
func (a *agent) awaitActing(t *testing.T, most time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most+1)
	defer cancel()
	began := time.Now()
	if err := a.Wait(ctx); err != nil {
		t.Fatalf("%s does not act after %s: %v, %v", a.options.Identity, most, a.Hub(), a.told())
	}
	return time.Since(began)
}

// stands returns what the agent may do: "acts", "unreachable" or "does not act". It fails if
// the hub's answer does not match.
func (a *agent) stands() string {
	err := a.Target()
	switch {
	case err == nil && a.Hub() == nil:
		return "acts"
	case errors.Is(err, ErrTargetUnreachable) && a.Hub() == nil:
		return "unreachable"
	case errors.Is(err, ErrNotActing):
		return "does not act"
	}
	return fmt.Sprintf("target: %v, hub: %v", err, a.Hub())
}

// The longest waits for a failed request, and for the next heartbeat.
const (
	retryMost   = time.Duration((1 + hubRetrySpread) * float64(hubRetry))
	longestBeat = DefaultHeartbeat * 11 / 10
)

func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// sleep runs everything that is due within d.
func sleep(d time.Duration) {
	pass(d)
	synctest.Wait()
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of synctest the wait is not real
}
