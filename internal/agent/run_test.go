package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the API server that the tests of watches and of the Lease share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}

const patience = 30 * time.Second

// process is a replica with its context.
type process struct {
	*replica

	ctx  context.Context
	stop context.CancelFunc
}

func (p process) run() error { return p.replica.run(p.ctx, p.stop) }

// newProcess returns one of several agents of a cluster.
func newProcess(t *testing.T, options Options, configs Configs) process {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	if configs.Registry == nil {
		configs.Registry = prometheus.NewPedanticRegistry()
	}
	replica, err := newReplica(ctx, options, configs)
	kit.Must(t, err)
	return process{replica, ctx, stop}
}

// newLocal returns one of several agents of a cluster that is hub and target.
func newLocal(t *testing.T, cluster string) process {
	t.Helper()
	return newProcess(t, optionsOf(t, cluster), Configs{Hub: server, Target: server, Logger: logr.Discard()})
}

// optionsOf returns the options of an agent that serves nothing.
func optionsOf(t *testing.T, cluster string, arguments ...string) Options {
	t.Helper()
	var options Options
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	options.AddFlags(flags)
	arguments = append(arguments, "--cluster", cluster, "--namespace=default", "--health-probe-bind-address=0", "--metrics-bind-address=0")
	kit.Must(t, errors.Join(flags.Parse(arguments), options.Validate()))
	return options
}

// start starts a replica, and returns a function that stops it and waits for its end.
func start(t *testing.T, replica process) (stop func()) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- replica.run() }()
	return func() {
		replica.stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// leader returns the holder of the Lease, "" without one.
func leader(t *testing.T, clients kubernetes.Interface, cluster string) string {
	t.Helper()
	lease, err := clients.CoordinationV1().Leases(metav1.NamespaceDefault).Get(context.Background(), application.TargetLease(cluster), metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return ""
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// acts reports whether the replica acts, according to its metrics.
func acts(t *testing.T, replica process) bool {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	kit.Must(t, replica.counts.Register(registry))
	return strings.Contains(scrape(t, registry), fmt.Sprintf("krake_agent_acting{cluster=%q} 1\n", replica.options.Cluster))
}

// A replica that does not act also knows the Applications, so that it takes over without a
// list.
func TestTheStandbyIsWarm(t *testing.T) {
	t.Parallel()
	cluster := kit.UniqueName("standby")
	clients := kubernetes.NewForConfigOrDie(server)
	now, seconds, somebody := metav1.NowMicro(), int32(3600), "somebody"
	_, err := clients.CoordinationV1().Leases(metav1.NamespaceDefault).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: application.TargetLease(cluster)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &somebody, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	standby := newLocal(t, cluster)
	defer start(t, standby)()
	_, err = clients.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: cluster, Annotations: map[string]string{application.ClusterAnnotation: cluster},
		Labels: map[string]string{application.HolderLabel(cluster): "true", application.StateLabel: string(application.StateRunning)},
	}}, metav1.CreateOptions{})
	kit.Must(t, err)
	kit.EventuallyNil(t, func() error {
		if counts := standby.countStates(); counts[application.StateRunning] != 1 {
			return fmt.Errorf("the Applications that it knows: %v", counts)
		}
		return nil
	})
	if err := standby.tenure.Target(); !errors.Is(err, right.ErrNotActing) || acts(t, standby) {
		t.Errorf("it acts, or does not know why not: %v", err)
	}
}

// A change of an Application wakes those of its namespace that come after it and have not begun.
func TestAChangeWakesThoseThatWait(t *testing.T) {
	t.Parallel()
	cluster := kit.UniqueName("waiting")
	clients := kubernetes.NewForConfigOrDie(server)
	create := func(namespace, name, after string, data map[string]string) {
		t.Helper()
		_, err := clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{Data: data, ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{application.AfterAnnotation: after}, Labels: map[string]string{application.HolderLabel(cluster): "true"},
		}}, metav1.CreateOptions{})
		kit.Must(t, err)
	}
	createNamespace(t, clients, cluster)
	create(cluster, "waits", "songs,definitions", nil)
	create(cluster, "waits-for-another", "songs", nil)
	create(cluster, "has-begun", "definitions", map[string]string{application.InventoryKey(cluster): "[]"})
	create(cluster, "elsewhere-has-begun", "definitions", map[string]string{application.InventoryKey("east"): "[]"})
	create(metav1.NamespaceDefault, cluster, "definitions", nil)
	replica := newLocal(t, cluster)
	defer start(t, replica)()
	changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "definitions"}}
	kit.EventuallyNil(t, func() error {
		woken := replica.waitingFor(t.Context(), changed)
		slices.SortFunc(woken, func(a, b ctrl.Request) int { return strings.Compare(a.Name, b.Name) })
		if len(woken) != 2 || woken[0].Name != "elsewhere-has-begun" || woken[1].Name != "waits" || woken[1].Namespace != cluster {
			return fmt.Errorf("woken are %v", woken)
		}
		return nil
	})
}

// A replica that ends releases its Leases at once, but only after its running work has ended:
// two replicas never act.
func TestTheLeasesOutliveTheWork(t *testing.T) {
	t.Parallel()
	cluster := kit.UniqueName("handover")
	clients := kubernetes.NewForConfigOrDie(server)
	createNamespace(t, clients, application.AgentsNamespace)
	ending := newLocal(t, cluster)
	begun, atTheEnd := make(chan struct{}), error(nil)
	err := ending.manager.Add(manager.RunnableFunc(right.OnceActing(ending.tenure, func(ctx context.Context) error { // like a running pass
		close(begun)
		<-ctx.Done()
		<-time.After(500 * time.Millisecond) // its work until it notices
		atTheEnd = errors.Join(ending.tenure.Target(), ending.tenure.Hub())
		if leader(t, clients, cluster) == "" {
			atTheEnd = errors.New("nobody holds the Lease")
		}
		return nil
	})))
	kit.Must(t, err)
	stop := start(t, ending)
	<-begun
	kit.Eventually(t, func() string { // the work may begin before the change is reported
		if !acts(t, ending) {
			return "the metrics do not say that it acts"
		}
		return ""
	})
	stop()
	check.Must(t, atTheEnd)
	check.Equal(t, "who holds the Lease", "", leader(t, clients, cluster))
	next := newLocal(t, cluster)
	began := time.Now()
	defer start(t, next)()
	kit.Must(t, next.tenure.Wait(t.Context()))
	if since := time.Since(began); since > patience/3 {
		t.Errorf("the next one acts after %s", since)
	}
}

// An agent ends with an error when another one has taken its Lease. Its successor starts with
// a fresh state.
func TestTheLeaseIsTaken(t *testing.T) {
	t.Parallel()
	cluster := kit.UniqueName("taken")
	clients := kubernetes.NewForConfigOrDie(server)
	createNamespace(t, clients, application.AgentsNamespace)
	losing := newLocal(t, cluster)
	ended := make(chan error, 1)
	go func() { ended <- losing.run() }()
	kit.Must(t, losing.tenure.Wait(t.Context()))
	kit.EventuallyNil(t, func() error { // until it comes between two renewals
		lease, err := clients.CoordinationV1().Leases(metav1.NamespaceDefault).Get(t.Context(), application.TargetLease(cluster), metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity = new("somebody")
		_, err = clients.CoordinationV1().Leases(metav1.NamespaceDefault).Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	})
	select {
	case err := <-ended:
		check.Equal(t, "how it ended", right.ErrLost, err, cmpopts.EquateErrors())
	case <-time.After(patience):
		t.Error("it goes on")
	}
	if err := losing.tenure.Target(); err == nil {
		t.Error("it may still write")
	}
}

// An agent that must not act is not ready and names the reason: its Deployment stops the
// rollout.
func TestReady(t *testing.T) {
	why := ""
	check := unlessRefused(func() string { return why })
	if err := check(nil); err != nil {
		t.Error(err)
	}
	if why = "DuplicateAgent: somebody"; check(nil) == nil || check(nil).Error() != why {
		t.Errorf("it is refused, and says %v", check(nil))
	}
}

// The target, where the metrics are read, decides who may read them, not the hub.
func TestWhoReadsTheMetrics(t *testing.T) {
	ask := func(t *testing.T) (config *rest.Config, asked *[]string) {
		t.Helper()
		asked = &[]string{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			*asked = append(*asked, r.URL.Path)
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(server.Close)
		return &rest.Config{Host: server.URL}, asked
	}
	hub, hubAsked := ask(t)
	target, targetAsked := ask(t)
	metrics, err := metricsServer(optionsOf(t, "edge"), target)
	kit.Must(t, err)
	filter, err := metrics.FilterProvider(hub, http.DefaultClient)
	kit.Must(t, err)
	handler, err := filter(logr.Discard(), http.NotFoundHandler())
	kit.Must(t, err)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", "Bearer somebody")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	if len(*hubAsked) > 0 || !slices.Contains(*targetAsked, "/apis/authentication.k8s.io/v1/tokenreviews") {
		t.Errorf("asked of the hub: %v, of the target: %v", *hubAsked, *targetAsked)
	}
}

// An agent that has never reached its hub does not request the Lease, which another replica
// may use. It ends when asked to.
func TestTheHubNeverAnswers(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and sends nothing
	kit.Must(t, err)
	t.Cleanup(func() {
		if err := silent.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster := kit.UniqueName("waiting")
	stop := start(t, newProcess(t, optionsOf(t, cluster), Configs{
		Hub: &rest.Config{Host: "http://" + silent.Addr().String()}, Target: server, Logger: logr.Discard(),
	}))
	<-time.After(time.Second)
	_, err = kubernetes.NewForConfigOrDie(server).CoordinationV1().Leases(metav1.NamespaceDefault).Get(t.Context(), application.TargetLease(cluster), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it has asked for the Lease: %v", err)
	}
	began := time.Now()
	stop()
	if since := time.Since(began); since > patience/2 {
		t.Errorf("it ended after %s", since)
	}
}

func createNamespace(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	_, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// Until the Applications are known, there are no metrics about them.
func TestUnknownApplicationsAreNotNone(t *testing.T) {
	check.Equal(t, "states", 0, len((&base{known: &hub.ApplicationLister{}}).countStates()))
}

// Writes to Applications and lists for comparison are counted.
func TestRequestsAreCounted(t *testing.T) {
	var reasons []string
	count := func(reason string) { reasons = append(reasons, reason) }
	cm := kit.Application(appName.Namespace, appName.Name, "[]", kit.Data(application.MangledSchemaKey, "[]"), kit.Data(application.LastAppliedKey, "[]"))
	cm.UID = "1"
	cm.Labels = map[string]string{application.ClusterLabel: "local", application.HolderLabel("local"): "true"}
	client := telemetry.CountWrites(fake.NewClientBuilder().WithObjects(cm).Build(), count)
	keys := func(context.Context) (signature.Keys, string, error) { return nil, "", nil }
	store := hub.NewStore(client, "ourselves", "local", keys, func() error { return nil })
	app, err := store.Get(t.Context(), appName)
	kit.Must(t, err)
	app.Status.State = application.StateRunning
	kit.Must(t, store.Update(t.Context(), app))
	kit.Must(t, store.Update(t.Context(), app)) // writes nothing

	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	lists, err := telemetry.NewLists(&rest.Config{Host: api.URL}, count)
	kit.Must(t, err)
	if _, err := lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("listed: %v", err)
	}
	check.Equal(t, "counted", []string{"status", "resync"}, reasons)
}

func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}
