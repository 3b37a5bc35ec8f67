package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// journeys is the number of Applications that the test follows. journeySteps is the number of
// random steps before all faults end.
const (
	journeys     = 300
	journeySteps = 60
)

// restless is a hub with one Application, which its user moves, changes and deletes at any
// time. Each cluster has one agent. At any of its calls, an agent may crash, get no answer, or
// read a stale version.
type restless struct {
	t      *testing.T
	chance *rand.Rand
	// versions are all versions on the hub, the current one last. nil means that the
	// Application does not exist.
	versions []*corev1.ConfigMap
	seats    []*seat
	now      time.Time
	// peace: no more faults, and no more changes by others.
	peace bool
	// depth counts nested steps.
	depth int
	// completed: the Pods have reported that their work is done.
	completed bool
	// safe are the objects that were ready on a cluster and are still desired. From then on,
	// each must be on at least one cluster, unless it shuts down before a move.
	safe map[string]bool
	// happened is the log of all steps.
	happened []string
}

// seat is a cluster with its agent.
type seat struct {
	*restless

	name string
	w    *world
	// cached is the version that the agent's watch has reached. written is the one that the
	// agent has written itself.
	cached  int
	written *corev1.ConfigMap
	// acting: a pass is running. due: another pass is requested.
	acting, due bool
	// deaf: the agent gets no events from the hub. mute: the agent's target does not answer.
	deaf, mute bool
	// calling: the agent calls the endpoint, and a crash cannot cancel that.
	calling bool
	// addresses counts the addresses that the API server has assigned.
	addresses int
}

// crash is the panic that ends a process.
type crash struct{}

// Whatever the user does, and whatever fails at any time: an object that was ready on a
// cluster is always on at least one while it is desired. No foreign object is deleted, and a
// value that one API server assigned reaches no other. Objects that shut down first are
// neither created elsewhere nor deleted before the shutdown. In the end each object is healthy
// on exactly the cluster that the Application names, or on none if that was deleted.
func TestRestlessApplication(t *testing.T) {
	seed := seedOf(t)
	applications := uint64(journeys)
	if testing.Short() {
		applications = journeys / 4
	}
	for run := range applications {
		j := newRestless(t, rand.New(rand.NewPCG(seed, run)))
		for range journeySteps {
			j.step()
		}
		j.settle()
		if t.Failed() {
			t.Fatalf("journey %d:\n%s", run, strings.Join(j.happened, "\n"))
		}
	}
}

// seedOf returns the seed of the random choices, and logs it. With the same KRAKE_TEST_SEED
// the test repeats them.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("KRAKE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("KRAKE_TEST_SEED=%d", seed)
	return seed
}

// The specs among which the user changes.
var restlessSpecs = [][2]string{
	{configOf("a"), ""},
	{configOf("a") + configOf("b"), ""},
	{configOf("b") + "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}\n", ""},
	{
		configOf("a") + "---\n{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}\n",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: null}}\n---\n" +
			"{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: null}}\n",
	},
	{configOf("a") + "---\n{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}\n", ""},
	{hookedObjects, ""},
	{hookedObjects + configOf("a"), ""},
}

func configOf(name string) string {
	return "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + `}, data: {a: "1"}}` + "\n"
}

// foreign is an object without an owner. One of the specs has an object of the same name.
const foreign = "ConfigMap b"

func newRestless(t *testing.T, chance *rand.Rand) *restless {
	t.Helper()
	j := &restless{t: t, chance: chance, now: noon, safe: map[string]bool{}}
	for _, name := range []string{application.LocalCluster, "edge", "third"} {
		s := &seat{restless: j, name: name, w: newWorld(t, restlessSpecs[0][0], "")}
		s.w.answer, s.w.Secrets, s.w.Shutdowns = s.assign, &maker{}, s
		s.w.ShutdownDefaults = reconcile.ShutdownDefaults{GraceTime: grace, Strategy: application.GiveUpShutdown}
		j.seats = append(j.seats, s)
	}
	j.versions = []*corev1.ConfigMap{j.seats[0].w.cm}
	j.seats[2].w.objects[foreign] = theirs("v1", "ConfigMap", "b", nil)
	for _, s := range j.seats {
		s.start()
	}
	return j
}

func (j *restless) say(format string, args ...any) {
	j.happened = append(j.happened, fmt.Sprintf("%s%s", strings.Repeat("  ", j.depth), fmt.Sprintf(format, args...)))
}

func (j *restless) complain(format string, args ...any) {
	j.t.Helper()
	j.say(format, args...)
	j.t.Errorf(format, args...)
}

// step runs one random step.
func (j *restless) step() {
	j.now = j.now.Add(time.Duration(j.chance.IntN(20)) * time.Second)
	if j.depth > 2 {
		return
	}
	j.depth++
	defer func() { j.depth-- }()
	switch s := j.seats[j.chance.IntN(len(j.seats))]; {
	case j.happens(12):
		j.user()
	case j.happens(10):
		s.disturb()
	case j.happens(8):
		s.fail()
	case j.happens(20):
		s.pods()
	case !s.acting:
		s.catchUp(s.cached + j.chance.IntN(len(j.versions)-s.cached))
		s.pass()
	}
}

// fail breaks connections, or restores them.
func (s *seat) fail() {
	s.deaf, s.mute = s.happens(30), s.happens(30)
	s.say("agent %s: without the hub: %v, without its target: %v", s.name, s.deaf, s.mute)
	s.due = true
}

func (j *restless) happens(percent int) bool { return !j.peace && j.chance.IntN(100) < percent }

// stored returns the current version on the hub.
func (j *restless) stored() *corev1.ConfigMap { return j.versions[len(j.versions)-1] }

func (j *restless) store(cm *corev1.ConfigMap) {
	if cm.DeletionTimestamp != nil && len(cm.Finalizers) == 0 {
		cm = nil
		j.say("the Application is gone")
	} else {
		cm.ResourceVersion = strconv.Itoa(len(j.versions) + 1)
	}
	j.versions = append(j.versions, cm)
	j.assess()
}

// user makes one random change as a user.
func (j *restless) user() {
	if j.stored() == nil {
		return
	}
	cm := j.stored().DeepCopy()
	switch {
	case j.happens(2):
		j.say("the user deletes the Application")
		cm.DeletionTimestamp = &metav1.Time{Time: j.now}
	case j.happens(60):
		to := j.seats[j.chance.IntN(len(j.seats))].name
		j.say("the user moves the Application to %s", to)
		cm.Annotations[application.ClusterAnnotation] = to
	case j.happens(35):
		j.userOfHooks(cm)
	case j.happens(20):
		mode := []application.Mode{application.Enforce, application.Observe, application.Suspend}[j.chance.IntN(3)]
		j.say("the user says %s", mode)
		cm.Annotations[application.ModeAnnotation] = string(mode)
	default:
		n := j.chance.IntN(len(restlessSpecs))
		j.say("the user wants spec %d", n)
		cm.Data[application.ManifestKey], cm.Data[application.ObserverSchemaKey] = restlessSpecs[n][0], restlessSpecs[n][1]
	}
	j.admit(cm)
}

// userOfHooks makes one random change to the hooks as a user.
func (j *restless) userOfHooks(cm *corev1.ConfigMap) {
	name, values := application.HooksAnnotation, []string{"", "shutdown", "shutdown", "complete", "complete,shutdown"}
	switch j.chance.IntN(6) {
	case 0:
		name, values = application.ShutdownStrategyAnnotation, []string{"delete", "give_up"}
	case 1:
		name, values = application.ShutdownRetryAnnotation, []string{"1", "2"}
	case 2:
		name, values = application.ShutdownRetryCountAnnotation, []string{"0", "1"}
	}
	value := values[j.chance.IntN(len(values))]
	j.say("the user says %s: %s", name, value)
	cm.Annotations[name] = value
}

// pods makes the Pods of a cluster report to its agent, if they may. They report a shutdown,
// perhaps twice or late, or completed work.
func (s *seat) pods() {
	cm := s.newest()
	if cm == nil || s.calling || s.deaf {
		return
	}
	app, err := application.ReadFor(cm, s.name)
	check.Must(s.t, err)
	s.calling = true
	defer func() { s.calling = false }()
	if app.Spec.Hooks.Complete && app.Hooks.Tokens[application.Complete] != "" && s.happens(5) {
		s.completed = true
		state, err := s.w.Complete(s.t.Context(), app)
		s.say("agent %s: it is complete: %s, %v", s.name, state, err)
	} else if app.Spec.Hooks.Shutdown && app.Hooks.Tokens[application.Shutdown] != "" {
		state, err := s.w.ConfirmShutdown(s.t.Context(), app)
		s.say("agent %s: it has shut down: %s, %v", s.name, state, err)
	}
	s.due = true
}

func (s *seat) Call(context.Context, manifest.Ref, int32) error {
	return s.try("ask it to shut down", &s.mute, func() error { return nil })
}

// admit completes a user's update as admission does.
func (j *restless) admit(cm *corev1.ConfigMap) {
	check.Must(j.t, mutate.PrepareForUpdate(j.t.Context().Err, cm, j.stored(), true).Refusals.ToAggregate())
	wanted := wantedBy(j.t, cm)
	maps.DeleteFunc(j.safe, func(name string, _ bool) bool {
		return cm.DeletionTimestamp != nil || !slices.Contains(wanted, name) || application.HooksOf(cm).Shutdown
	})
	j.store(cm)
}

func wantedBy(t *testing.T, cm *corev1.ConfigMap) []string {
	t.Helper()
	desired, refusals := mutate.Desire(application.SpecOf(cm), nil)
	check.Must(t, refusals.ToAggregate())
	var names []string
	for _, object := range desired.Resources {
		id, err := manifest.Identify(object)
		check.Must(t, err)
		names = append(names, label(id))
	}
	return names
}

// secure records the objects that an agent has reported as ready.
func (j *restless) secure(before, after *corev1.ConfigMap) {
	said := before.Data[application.StatusKey] != after.Data[application.StatusKey]
	app, err := application.Read(after)
	check.Must(j.t, err)
	if said && !app.Deleted && app.IsReady() && !app.Spec.Hooks.Shutdown {
		for _, name := range wantedBy(j.t, after) {
			j.safe[name] = true
		}
	}
}

// assess checks that all safe objects exist.
func (j *restless) assess() {
	for name := range j.safe {
		if len(j.at(name)) == 0 {
			j.complain("%s is on no cluster, though it was ready", name)
		}
	}
}

// at returns the clusters that have an object of the Application.
func (j *restless) at(name string) []string {
	var clusters []string
	for _, s := range j.seats {
		if owner, ok := application.OwnerOf(s.w.objects[name]); ok && owner == appName {
			clusters = append(clusters, s.name)
		}
	}
	return clusters
}

// start starts a new process of the agent. It knows nothing, and does nothing before it has
// listed the hub.
func (s *seat) start() {
	s.w.restart()
	s.w.ClusterName, s.w.Applications, s.w.Clusters = s.name, s, s
	s.cached, s.written, s.deaf, s.due = len(s.versions)-1, nil, false, true
}

// catchUp advances the watch to a version of the Application.
func (s *seat) catchUp(to int) {
	if s.deaf {
		return
	}
	before := s.listed()
	s.cached = to
	after := s.listed()
	switch {
	case (before == nil) != (after == nil):
		s.due = true
	case before != nil && !application.SameFor(before, after, s.name):
		s.due = true
	}
}

// listed returns the version that the agent's selector matches, or nil.
func (s *seat) listed() *corev1.ConfigMap {
	cm := s.versions[s.cached]
	if cm == nil || cm.Labels[application.HolderLabel(s.name)] == "" {
		return nil
	}
	return cm
}

// newest returns the newer of the watched version and the version that the agent wrote.
func (s *seat) newest() *corev1.ConfigMap {
	listed := s.listed()
	if listed == nil || s.written == nil {
		s.written = nil
		return listed
	}
	if versionOf(listed) < versionOf(s.written) {
		return s.written
	}
	s.written = nil
	return listed
}

func versionOf(cm *corev1.ConfigMap) int { return sure(strconv.Atoi(cm.ResourceVersion)) }

// pass runs a pass of the agent.
func (s *seat) pass() {
	s.acting, s.due, s.w.now = true, false, s.now
	s.say("agent %s, which knows version %d of %d", s.name, s.cached+1, len(s.versions))
	defer func() {
		s.acting = false
		switch cause := recover(); cause.(type) {
		case nil:
		case crash:
			s.say("agent %s crashes", s.name)
			s.start()
		default:
			panic(cause)
		}
	}()
	look := s.w.Reconcile
	if s.mute && s.happens(50) { // the agent knows that the target does not answer
		look = s.w.Unreachable
	}
	result, err := look(s.t.Context(), ctrl.Request{NamespacedName: appName})
	if err != nil || result != (ctrl.Result{}) {
		s.due = true
	}
	if err != nil {
		s.say("agent %s: %v", s.name, err)
	}
}

// meanwhile runs random steps between any two calls of an agent.
func (s *seat) meanwhile() {
	switch {
	case !s.calling && s.happens(2):
		panic(crash{})
	case s.happens(15):
		s.step()
	}
}

// try runs a request to an API server. It may fail before or after its effect, or lose its
// connection.
func (s *seat) try(what string, cut *bool, do func() error) error {
	s.meanwhile()
	if *cut {
		return errSilent
	}
	if s.happens(4) {
		s.say("agent %s: %s: not done", s.name, what)
		return s.failure()
	}
	err := do()
	s.say("agent %s: %s: %v", s.name, what, err)
	s.assess()
	s.meanwhile()
	if s.happens(4) {
		s.say("agent %s: %s: no answer", s.name, what)
		return s.failure()
	}
	return err
}

func (s *seat) failure() error {
	if s.happens(50) {
		return &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	}
	return apierrors.NewInternalError(errors.New("of the test"))
}

func (s *seat) Get(_ context.Context, name types.NamespacedName) (*application.Application, error) {
	s.meanwhile()
	cm := s.newest()
	if name != appName || cm == nil {
		return nil, nil
	}
	app, err := application.ReadFor(cm, s.name)
	return admitted(app), err
}

func (s *seat) Delete(_ context.Context, app *application.Application) error {
	return s.try("delete the Application", &s.deaf, func() error {
		cm := s.stored()
		if cm == nil || cm.DeletionTimestamp != nil {
			return nil
		}
		if application.ClusterOf(cm) != s.name || !application.HooksOf(cm).Complete || !s.completed { // according to the deletion policy
			return apierrors.NewForbidden(gvr.GroupResource{Resource: "configmaps"}, app.Name, errors.New("no hook"))
		}
		cm = cm.DeepCopy()
		cm.DeletionTimestamp = &metav1.Time{Time: s.now}
		clear(s.safe)
		s.store(cm)
		return nil
	})
}

// checkClaim checks that no cluster claims objects before their shutdown elsewhere.
func (s *seat) checkClaim(before, after *corev1.ConfigMap) {
	key := application.InventoryKey(s.name)
	if _, held := before.Data[key]; held || after.Data[key] == "" || !application.HooksOf(before).Shutdown {
		return
	}
	for _, finalizer := range before.Finalizers {
		if finalizer != application.Finalizer(s.name) {
			s.complain("agent %s begins, and %s is there still", s.name, finalizer)
		}
	}
}

// checkShutDown checks that no object is deleted before its shutdown.
func (s *seat) checkShutDown(name string) {
	cm := s.newest()
	if cm == nil || name != "Deployment web" || s.w.objects[name] == nil {
		return
	}
	app, err := application.ReadFor(cm, s.name)
	check.Must(s.t, err)
	if app.IsCurrent() && !app.Deleted || !app.Spec.Hooks.Shutdown || app.Hooks.Completed {
		return
	}
	if record := app.Hooks.Shutdown; record == nil || record.State != application.StateReady && record.State != application.StateDeleting {
		s.complain("agent %s deletes what has not shut down: %+v", s.name, record)
	}
}

// Update implements reconcile.Applications, as the agent's store does.
func (s *seat) Update(_ context.Context, app *application.Application) error {
	stored := s.newest()
	conflict := apierrors.NewConflict(gvr.GroupResource{Resource: "configmaps"}, app.Name, errors.New("it has changed"))
	if stored == nil || stored.ResourceVersion != app.Version {
		return conflict
	}
	updated := stored.DeepCopy()
	if err := app.Record(updated); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(stored, updated) {
		return nil
	}
	err := s.try("write "+strings.Join(changed(stored, updated), " "), &s.deaf, func() error {
		if s.stored() == nil || s.stored().ResourceVersion != app.Version {
			return conflict
		}
		if refusals := mutate.CheckAgentUpdate(updated, s.stored(), s.name); len(refusals) > 0 {
			s.complain("agent %s: %v", s.name, refusals)
		}
		s.checkClaim(s.stored(), updated)
		s.secure(s.stored(), updated)
		s.store(updated)
		return nil
	})
	if err == nil {
		s.written = updated
		app.Stored(updated)
	}
	return err
}

func (s *seat) As(context.Context, reconcile.Account) (reconcile.Cluster, error) {
	return target{s}, nil
}

func (s *seat) MayRead(context.Context, reconcile.Account, manifest.Ref) error { return nil }

// target is the API server of a cluster.
type target struct{ *seat }

func (a target) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (live map[string]any, err error) {
	err = a.try("create "+label(ref.ID), &a.mute, func() error {
		if address := addressOf(object); address != "" && !strings.HasPrefix(address, a.name) {
			a.complain("on %s, %s is to have address %s", a.name, ref, address)
		}
		live, err = cluster{a.w}.Create(ctx, ref, object)
		return err
	})
	return live, err
}

func (a target) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (after map[string]any, err error) {
	before := addressOf(a.w.objects[label(ref.ID)])
	err = a.try("patch "+label(ref.ID), &a.mute, func() error {
		after, err = cluster{a.w}.Patch(ctx, ref, live, repair)
		return err
	})
	if address := addressOf(a.w.objects[label(ref.ID)]); address != before && after != nil {
		a.complain("on %s, %s had address %s and has %s", a.name, ref, before, address)
	}
	return after, err
}

func (a target) Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (left map[string]any, err error) {
	theirs := a.w.objects[label(ref.ID)]
	a.checkShutDown(label(ref.ID))
	err = a.try("delete "+label(ref.ID), &a.mute, func() error {
		left, err = cluster{a.w}.Delete(ctx, ref, proof)
		return err
	})
	if uidOf(theirs) == "theirs" && a.w.objects[label(ref.ID)] == nil {
		a.complain("on %s, somebody else's %s was deleted", a.name, ref)
	}
	return left, err
}

func uidOf(live map[string]any) types.UID { return (&unstructured.Unstructured{Object: live}).GetUID() }

// assign sets a cluster address on a Service.
func (s *seat) assign(live map[string]any) {
	if live["kind"] != "Service" || addressOf(live) != "" {
		return
	}
	s.addresses++
	writes(fmt.Sprintf("%s-%d", s.name, s.addresses), "spec", "clusterIP")(live)
}

func addressOf(live map[string]any) string {
	address, _, _ := unstructured.NestedString(live, "spec", "clusterIP")
	return address
}

// disturb changes an object as another client, or makes it unhealthy.
func (s *seat) disturb() {
	for _, name := range slices.Sorted(maps.Keys(s.w.objects)) {
		live := s.w.objects[name]
		if name == foreign && uidOf(live) == "theirs" || !s.happens(50) {
			continue
		}
		s.say("on %s, somebody changes %s", s.name, name)
		object := &unstructured.Unstructured{Object: live}
		if _, ok := live["data"]; ok {
			live["data"] = map[string]any{"a": "theirs"}
		}
		setPods(object, s.chance.Int64N(2))
		s.w.bump(live)
		s.due = true
	}
}

// settle ends all faults, with the Application on a cluster that has room for it, and checks
// the result.
func (j *restless) settle() {
	j.peace = true
	j.say("peace")
	var home string
	if cm := j.stored(); cm != nil && cm.DeletionTimestamp == nil {
		home = j.seats[j.chance.IntN(2)].name
		cm = cm.DeepCopy()
		cm.Annotations[application.ClusterAnnotation], cm.Annotations[application.ModeAnnotation] = home, string(application.Enforce)
		cm.Annotations[application.HooksAnnotation] = []string{"", "shutdown"}[j.chance.IntN(2)]
		j.admit(cm)
	}
	for _, s := range j.seats {
		for _, live := range s.w.objects {
			setPods(&unstructured.Unstructured{Object: live}, 1)
		}
		s.deaf, s.mute, s.due = false, false, true
	}
	j.rest()
	if j.completed && j.stored() == nil {
		home = ""
	}
	j.judge(home)
}

// rest runs passes while any agent has a reason for one. The checks of Secrets never end, but
// shutdowns do.
func (j *restless) rest() {
	const most, enough = 40, 3
	quiet := 0
	for range most {
		j.now = j.now.Add(time.Minute)
		busy, versions := false, len(j.versions)
		for _, s := range j.seats {
			s.catchUp(len(j.versions) - 1)
			if s.due {
				busy = true
				s.pass()
				s.pods()
			}
		}
		if quiet++; len(j.versions) > versions {
			quiet = 0
		}
		if !busy || quiet == enough {
			if !j.giveIn() {
				return
			}
			quiet = 0
		}
	}
	j.complain("it does not come to rest in %d rounds", most)
}

// giveIn removes the hook as a user if an object did not shut down: perhaps it never had a
// token.
func (j *restless) giveIn() bool {
	cm := j.stored()
	if cm == nil || !application.HooksOf(cm).Shutdown || !slices.ContainsFunc(j.seats, func(s *seat) bool {
		app, err := application.ReadFor(cm, s.name)
		return err == nil && app.Hooks.Shutdown != nil && app.Hooks.Shutdown.State == application.StateDegraded
	}) {
		return false
	}
	j.say("the user gives in")
	cm = cm.DeepCopy()
	cm.Annotations[application.HooksAnnotation] = ""
	j.admit(cm)
	return true
}

// judge checks the final state. home is the cluster of the Application, or empty if it was
// deleted.
func (j *restless) judge(home string) {
	var wanted []string
	switch {
	case home != "":
		j.judgeStatus(home)
		wanted = slices.Sorted(slices.Values(wantedBy(j.t, j.stored())))
	case j.stored() != nil:
		j.complain("it was deleted, and is held by %v", application.HoldersOf(j.stored()))
	}
	for _, s := range j.seats {
		var want, got []string
		if s.name == home {
			want = wanted
		}
		for _, name := range slices.Sorted(maps.Keys(s.w.objects)) {
			if uidOf(s.w.objects[name]) != "theirs" {
				got = append(got, name)
			}
		}
		if !slices.Equal(want, got) {
			j.complain("cluster %s has %v, want %v", s.name, got, want)
		}
	}
	if uidOf(j.seats[2].w.objects[foreign]) != "theirs" {
		j.complain("somebody else's object is gone")
	}
}

func (j *restless) judgeStatus(home string) {
	if holders := application.HoldersOf(j.stored()); !slices.Equal(holders, []string{home}) {
		j.complain("it is on %s, and held by %v", home, holders)
	}
	app, err := application.Read(j.stored())
	if err != nil || !app.IsReady() || meta.FindStatusCondition(app.Status.Conditions, application.MigratingCondition) != nil {
		j.complain("on %s it is not at rest: %+v, %v", home, app.Status, err)
	}
}

func (a target) TryPatch(ctx context.Context, ref manifest.Ref, patch schema.Patch) error {
	return cluster{a.w}.TryPatch(ctx, ref, patch)
}
