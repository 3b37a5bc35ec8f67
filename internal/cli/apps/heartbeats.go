package apps

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// BeatsInterval is how often a watching command reads the Leases: no event reports silence.
const BeatsInterval = 15 * time.Second

// Heartbeats are the hub's Leases of the agents of clusters.
type Heartbeats struct {
	// Read: the user may read them, so that a cluster without one has no agent.
	Read   bool
	Leases map[string]coordinationv1.LeaseSpec // by name
	// Ahead is how far the hub's clock is ahead of the user's.
	Ahead time.Duration
}

// Silence returns a text if an agent is not heard, with the remedy. The text is empty if the
// agent is heard, or if that is unknown. It uses the hub's clock, because a laptop with a
// wrong clock must not raise an alarm.
func (h Heartbeats) Silence(cluster string, now time.Time) string {
	lease, known := h.Leases[application.HubLease(cluster)]
	heard := ptr.Deref(lease.RenewTime, metav1.MicroTime{}).Time
	switch {
	case !h.Read:
		return ""
	case !known && cluster == application.LocalCluster:
		return "cluster local has no agent that has ever come to this hub: install one there"
	case !known:
		return fmt.Sprintf("cluster %s has no agent that has ever come to this hub: enrol it (kubectl krake enrol %s), or name another cluster in annotation %s",
			cluster, cluster, application.ClusterAnnotation)
	case now.Add(h.Ahead).Sub(heard) > time.Duration(ptr.Deref(lease.LeaseDurationSeconds, 0))*time.Second:
		return fmt.Sprintf("the agent of cluster %s was heard at %s for the last time, and nothing is repaired there without it: look at its Pods, and at its way to this hub",
			cluster, env.TimeOf(heard))
	}
	return ""
}

// ReadHeartbeats reads the Leases of some clusters, and none if the user may not read them.
func ReadHeartbeats(ctx context.Context, e *env.Environment, clusters ...string) (Heartbeats, error) {
	config, err := e.Hub.ToRESTConfig()
	if err != nil {
		return Heartbeats{}, err
	}
	var date time.Time
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return dated{inner, &date} })
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return Heartbeats{}, err
	}
	found, err := readLeases(ctx, client.Leases(application.AgentsNamespace), clusters)
	switch {
	case apierrors.IsForbidden(err):
		return Heartbeats{}, nil
	case err != nil:
		return Heartbeats{}, fmt.Errorf("read the Leases of the agents in namespace %s: %w", application.AgentsNamespace, err)
	}
	beats := Heartbeats{Read: true, Leases: map[string]coordinationv1.LeaseSpec{}}
	for i := range found {
		beats.Leases[found[i].Name] = found[i].Spec
	}
	if !date.IsZero() {
		beats.Ahead = date.Sub(e.Now())
	}
	return beats, nil
}

// dated records the time of the server's last answer, by its own clock.
type dated struct {
	http.RoundTripper

	at *time.Time
}

func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		*d.at = at
	}
	return response, nil
}

// readLeases reads the Lease of a single cluster by its name, because a user may have the right
// to that one only. For several clusters it lists all.
func readLeases(ctx context.Context, client coordinationv1client.LeaseInterface, clusters []string) ([]coordinationv1.Lease, error) {
	clusters = slices.Compact(slices.Sorted(slices.Values(clusters)))
	if len(clusters) != 1 {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	lease, err := client.Get(ctx, application.HubLease(clusters[0]), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []coordinationv1.Lease{*lease}, nil
}

// HeartbeatsOf reads the Leases of the clusters of these Applications. A failure is a warning:
// the content of the Applications is still printed.
func HeartbeatsOf(ctx context.Context, e *env.Environment, items []Item) Heartbeats {
	var clusters []string
	for _, i := range items {
		if i.IsAdmitted() {
			clusters = append(clusters, application.ClusterOf(i.Stored))
		}
	}
	if len(clusters) == 0 {
		return Heartbeats{}
	}
	beats, err := ReadHeartbeats(ctx, e, clusters...)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(e.ErrOut, "Warning: whether the agents are heard is not known:", err)
	}
	return beats
}
