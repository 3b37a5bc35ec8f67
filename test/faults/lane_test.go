package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// lane stands for a cluster: an agent that carries out only the Applications of its own
// cluster name, its proxy, and a namespace. All lanes share one API server, but no lane
// affects another.
type lane struct {
	name, namespace string
	proxy           *proxy.Proxy
	agent           *agent
	apps            int // how many Applications the lane has had
	// disguised: the lane's agent takes the target for another cluster than the other
	// agents do.
	disguised bool
	// other is a second agent with its own name, proxy and namespace, or nil.
	other *lane
	// settled, songs and audit belong to the tales that are not judged yet. They are
	// the settled Applications, the kinds defined for them, and the begin of the tales
	// in the audit log.
	settled map[types.NamespacedName]time.Time
	songs   []definition
	audit   kit.Mark
	// hubFailed: a call about an Application has failed since the last tale. An agent pauses
	// all status writes to such a hub for some time.
	hubFailed atomic.Bool
}

// second is the suffix of a lane's name that names its other cluster.
const second = "-b"

// place returns the namespace where the objects of a cluster are.
func (l *lane) place(cluster string) string {
	if cluster == l.name+second {
		return l.namespace + second
	}
	return l.namespace
}

// places returns the namespaces of all clusters of the lane.
func (l *lane) places() []string {
	var places []string
	for _, each := range l.both() {
		places = append(places, each.namespace)
	}
	return places
}

// addSecond starts the lane's second agent.
func (l *lane) addSecond(ctx context.Context) error {
	if l.other != nil {
		return nil
	}
	name := l.name + second
	other, err := startLane(ctx, &lane{name: name, disguised: true}, "--hub-namespaces", l.name, "--namespaces", name, "--namespace-map", l.name+"="+name,
		"--hub-kubeconfig", kubeconfigOf(name), "--hub-uid", "of the hub")
	if err != nil {
		return err
	}
	l.other = other
	return nil
}

// both returns the lane, and its other lane if it has one.
func (l *lane) both() []*lane {
	if l.other == nil {
		return []*lane{l}
	}
	return []*lane{l, l.other}
}

// agents returns the agents of the lane.
func (l *lane) agents() []*agent {
	var agents []*agent
	for _, each := range l.both() {
		agents = append(agents, each.agent)
	}
	return agents
}

// start starts the stopped agents.
func (l *lane) start() error {
	var failures []error
	for _, each := range l.agents() {
		failures = append(failures, each.start())
	}
	return errors.Join(failures...)
}

// quiet returns how long no agent has called.
func (l *lane) quiet() time.Duration {
	quiet := l.proxy.Quiet()
	for _, each := range l.both() {
		quiet = min(quiet, each.proxy.Quiet())
	}
	return quiet
}

// end ends the lane.
func (l *lane) end() error {
	var failures []error
	for _, each := range l.both() {
		failures = append(failures, each.agent.kill())
		each.proxy.Close()
	}
	return errors.Join(failures...)
}

// intercept passes the calls of the lane's own agent to f, unless that is nil.
func (l *lane) intercept(f func(proxy.Call) *proxy.Fault) {
	identity := fmt.Sprintf(`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": %q}}`, l.name)
	l.proxy.Intercept(func(call proxy.Call) *proxy.Fault {
		switch {
		case l.disguised && call.Verb == "get" && call.Resource == "namespaces" && call.Name == "kube-system":
			return &proxy.Fault{Answer: http.StatusOK, Body: []byte(identity)}
		case f == nil:
			return nil
		}
		return f(call)
	})
}

// naming returns texts of which at least one is in the audit event of each request that
// concerns these namespaces or agents.
func naming(places ...string) []string {
	var words []string
	for _, place := range places {
		words = append(words, fmt.Sprintf("%q", place), ":"+place+`"`)
	}
	return words
}

// newLanes makes the lanes of a test that has many trials.
func newLanes(t *testing.T, name string, many int, arguments ...string) []*lane {
	t.Helper()
	lanes := make([]*lane, many)
	for i := range lanes {
		lanes[i] = newLane(t, fmt.Sprintf("%s-%d", name, i+1), arguments...)
	}
	return lanes
}

// newLane makes a lane whose agent runs.
func newLane(t *testing.T, name string, arguments ...string) *lane {
	t.Helper()
	kit.LookAtSources(t)
	l, err := startLane(t.Context(), &lane{name: name}, arguments...)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, l.end()) })
	return l
}

func startLane(ctx context.Context, l *lane, arguments ...string) (*lane, error) {
	name := l.name
	l.namespace, l.settled = name, map[types.NamespacedName]time.Time{}
	var err error
	if l.audit, err = kit.MarkAudit(env.Cluster); err != nil {
		return nil, err
	}
	if err := appoint(ctx, name); err != nil {
		return nil, err
	}
	direct, err := env.installation.AgentKubeconfig(ctx, name)
	if err != nil {
		return nil, err
	}
	through := kubeconfigOf(name)
	if l.proxy, err = proxy.Start(env.RESTConfig()); err != nil {
		return nil, err
	}
	l.intercept(nil)
	l.agent = &agent{name: "agent-" + name, kubeconfig: through, arguments: append([]string{"--cluster", name}, arguments...)}
	if err := errors.Join(l.proxy.WriteKubeconfig(direct, through), l.begin(ctx)); err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// beginning lets one agent begin at a time. Thirty at once occupy two processors for so long that the API server
// refuses Applications.
var beginning sync.Mutex

// begin starts the agent for the first time, and waits for its first watch.
func (l *lane) begin(ctx context.Context) error {
	beginning.Lock()
	defer beginning.Unlock()
	if err := l.agent.start(); err != nil {
		return err
	}
	return eventually(ctx, func(context.Context) error {
		if !slices.ContainsFunc(l.proxy.Since(0), func(call proxy.Call) bool { return call.Verb == "watch" }) {
			return fmt.Errorf("%s watches nothing", l.agent.name)
		}
		return nil
	})
}

// kubeconfigOf returns the file of an agent that leads to its proxy.
func kubeconfigOf(name string) string { return filepath.Join(env.Dir(), name+".kubeconfig") }

// appoint creates an agent's ServiceAccount with the shipped rights, and the namespace
// of the lane.
func appoint(ctx context.Context, name string) error {
	named := metav1.ObjectMeta{Name: name, Namespace: application.AgentsNamespace}
	accounts := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: application.AgentsNamespace}}
	lease := rbacv1.PolicyRule{ // the policy restricts the names
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"},
	}
	failures := []error{
		kit.ErrorOf(env.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})),
		kit.ErrorOf(env.CoreV1().ServiceAccounts(named.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{})),
		kit.ErrorOf(env.RbacV1().Roles(named.Namespace).Create(ctx,
			&rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{lease}}, metav1.CreateOptions{})),
		kit.ErrorOf(env.RbacV1().RoleBindings(named.Namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: named, Subjects: accounts, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		}, metav1.CreateOptions{})),
	}
	for _, part := range []string{"hub", "target", "reviews"} {
		failures = append(failures, kit.ErrorOf(env.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + part}, Subjects: accounts,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "krake-agent-" + part},
		}, metav1.CreateOptions{})))
	}
	return errors.Join(failures...)
}

// agent is the agent of a lane, as a process that is killed and started again.
type agent struct {
	name, kubeconfig string
	arguments        []string

	mu      sync.Mutex
	process *cluster.Process // nil while it is stopped
}

// start starts the agent unless it runs.
func (a *agent) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process != nil {
		return nil
	}
	process, err := env.installation.RunAgent(a.name, a.kubeconfig, a.arguments...)
	if err != nil {
		return err
	}
	a.process = process
	return nil
}

// kill ends the agent at once (SIGKILL).
func (a *agent) kill() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process == nil {
		return nil
	}
	err := a.process.Kill()
	a.process = nil
	return err
}

func (a *agent) down() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process == nil
}

// revive starts an agent again that could not start, as a kubelet does. It returns an
// error if the agent ended in another way.
func (a *agent) revive() error {
	a.mu.Lock()
	process := a.process
	a.mu.Unlock()
	if process == nil {
		return nil
	}
	select {
	case <-process.Exited():
	default:
		return nil
	}
	if err := process.Wait(); err == nil || !strings.Contains(err.Error(), "agent: set up: ") {
		return fmt.Errorf("the agent has ended by itself: %w", err)
	}
	return errors.Join(a.kill(), a.start())
}

// pause is the time between two checks. An agent that makes no call for silence counts
// as finished.
const (
	pause   = 20 * time.Millisecond
	silence = 60 * time.Millisecond
)

// await calls check whenever the agent is silent, until it returns nil. The pauses grow
// with the time.
func (l *lane) await(ctx context.Context, check func(context.Context) error) error {
	began := time.Now()
	deadline := began.Add(timeout)
	for {
		complaint := errors.New("the agent is never silent")
		if l.quiet() >= silence {
			if complaint = check(ctx); complaint == nil {
				return nil
			}
		}
		for _, each := range l.agents() {
			if err := each.revive(); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", timeout, complaint)
		}
		if err := sleep(ctx, max(pause, time.Since(began)/50)); err != nil {
			return err
		}
	}
}

// sleep waits for a time, or until the context ends, and returns its error.
func sleep(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// eventually repeats the check until it returns nil.
func eventually(ctx context.Context, check func(context.Context) error) error {
	for deadline := time.Now().Add(timeout); ; {
		err := check(ctx)
		switch {
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("after %s: %w", timeout, err)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// lines returns a line for each call.
func lines(calls []proxy.Call) string {
	texts := make([]string, 0, len(calls))
	for _, call := range calls {
		texts = append(texts, call.String())
	}
	return strings.Join(texts, "\n")
}
