package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// replica is one of several agents of a cluster, with its loop left out.
type replica struct {
	manager.Manager

	known *applications
}

func newReplica(t *testing.T, cluster string) *replica {
	t.Helper()
	options := Options{Cluster: cluster, Namespace: metav1.NamespaceDefault, LeaderElect: true, HealthAddress: "0"}
	options.Metrics.Address = "0"
	mgr, err := newManager(server, options, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	known, err := knowApplications(t.Context(), mgr)
	if err != nil {
		t.Fatal(err)
	}
	return &replica{mgr, known}
}

// run starts a replica, and gives what stops it and waits for its end.
func (r *replica) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// leader gives who holds the Lease, "" if nobody does.
func leader(t *testing.T, clients kubernetes.Interface, cluster string) string {
	t.Helper()
	lease, err := clients.CoordinationV1().Leases(metav1.NamespaceDefault).Get(context.Background(), name+"-"+cluster, metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return ""
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// checkLeaderMetric looks for who leads in the metrics, by the name of the Lease.
func checkLeaderMetric(t *testing.T, lease string) {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if want := `leader_election_master_status{name="` + lease + `"} 1`; !strings.Contains(answer.Body.String(), want) {
		t.Errorf("the metrics have no %s", want)
	}
}

// A replica that does not lead knows the Applications all the same, so that it
// takes over without a list of them.
func TestTheStandbyIsWarm(t *testing.T) {
	const cluster = "standby"
	clients := kubernetes.NewForConfigOrDie(server)
	now, seconds, somebody := metav1.NowMicro(), int32(3600), "somebody"
	_, err := clients.CoordinationV1().Leases(metav1.NamespaceDefault).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + cluster},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &somebody, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	standby := newReplica(t, cluster)
	defer standby.run(t)()
	_, err = clients.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: cluster, Labels: map[string]string{application.HolderLabel(cluster): "true", application.StateLabel: string(application.StateRunning)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if counts := standby.known.count(); counts[application.StateRunning] != 1 {
			return fmt.Errorf("the Applications that it knows: %v", counts)
		}
		return nil
	})
	select {
	case <-standby.Elected():
		t.Error("it leads")
	default:
	}
}

// A replica that is asked to end gives its Lease back, at once and not before
// what it had begun has ended: there are never two that act.
func TestTheLeaseOutlivesTheWork(t *testing.T) {
	const cluster = "handover"
	clients := kubernetes.NewForConfigOrDie(server)
	ending := newReplica(t, cluster)
	begun, atTheEnd := make(chan struct{}), ""
	err := ending.Add(manager.RunnableFunc(func(ctx context.Context) error { // as a pass under way
		close(begun)
		<-ctx.Done()
		<-time.After(500 * time.Millisecond) // what it does until it notices
		atTheEnd = leader(t, clients, cluster)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	stop := ending.run(t)
	<-begun
	stop()
	if atTheEnd == "" {
		t.Error("the Lease was given back before the work had ended")
	}
	if holder := leader(t, clients, cluster); holder != "" {
		t.Errorf("the Lease is still held by %s", holder)
	}
	next := newReplica(t, cluster)
	began := time.Now()
	defer next.run(t)()
	eventually(t, func() error {
		select {
		case <-next.Elected():
			return nil
		default:
			return errors.New("the next one does not lead")
		}
	})
	checkLeaderMetric(t, name+"-"+cluster)
	t.Logf("the next one leads after %s", time.Since(began).Round(time.Millisecond))
}

// What is under way when the agent is to end has a moment more, and no longer.
func TestOutliving(t *testing.T) {
	ending, end := context.WithCancel(t.Context())
	longer, done := outliving(ending, 50*time.Millisecond)
	defer done()
	end()
	if longer.Err() != nil {
		t.Error("it ends with the other")
	}
	select {
	case <-longer.Done():
	case <-time.After(patience):
		t.Error("it does not end")
	}
	longer, done = outliving(t.Context(), time.Hour)
	done()
	if longer.Err() == nil {
		t.Error("it goes on when the pass is over")
	}
}
