package cli

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

	"github.com/krake-observer/krake-observer/pkg/application"
)

// heartbeats are what the hub's Leases tell of the agents of clusters.
type heartbeats struct {
	// read tells that the user may read them: then a cluster without one has no agent.
	read bool
	of   map[string]heartbeat // by name of the Lease
	// ahead is by how much the hub's clock is ahead of the user's.
	ahead time.Duration
}

// heartbeat is when an agent was heard last, and for how long that counts.
type heartbeat struct {
	at    time.Time
	lasts time.Duration
}

func heartbeatOf(lease *coordinationv1.Lease) heartbeat {
	var at time.Time
	if lease.Spec.RenewTime != nil {
		at = lease.Spec.RenewTime.Time
	}
	return heartbeat{at, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second}
}

// silence tells that an agent is not to be heard, and what to do about it; "" if it is
// heard, or if nobody knows. It goes by the hub's clock: a laptop whose own is wrong must
// not raise an alarm.
func (h heartbeats) silence(cluster string, now time.Time) string {
	now = now.Add(h.ahead)
	beat, known := h.of[application.HubLease(cluster)]
	switch {
	case !h.read:
		return ""
	case !known && cluster == application.LocalCluster:
		return "cluster local has no agent that has ever come to this hub: install one there"
	case !known:
		return fmt.Sprintf("cluster %s has no agent that has ever come to this hub: enrol it (kubectl krake enrol %s), or name another cluster in annotation %s",
			cluster, cluster, application.ClusterAnnotation)
	case now.Sub(beat.at) > beat.lasts:
		return fmt.Sprintf("the agent of cluster %s was heard at %s for the last time, and nothing is repaired there without it: look at its Pods, and at its way to this hub",
			cluster, timeOf(beat.at))
	}
	return ""
}

// heartbeats reads those of some clusters. To whom may not read them, nothing is said.
func (e *environment) heartbeats(ctx context.Context, clusters ...string) (heartbeats, error) {
	config, err := e.hub.ToRESTConfig()
	if err != nil {
		return heartbeats{}, err
	}
	var date time.Time
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return dated{inner, &date} })
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return heartbeats{}, err
	}
	found, err := readLeases(ctx, client.Leases(application.AgentsNamespace), clusters)
	switch {
	case apierrors.IsForbidden(err):
		return heartbeats{}, nil
	case err != nil:
		return heartbeats{}, fmt.Errorf("read the Leases of the agents in namespace %s: %w", application.AgentsNamespace, err)
	}
	beats := heartbeats{read: true, of: map[string]heartbeat{}}
	for i := range found {
		beats.of[found[i].Name] = heartbeatOf(&found[i])
	}
	if !date.IsZero() {
		beats.ahead = date.Sub(e.now())
	}
	return beats, nil
}

// dated takes note of when the server has answered last, by its own clock.
type dated struct {
	http.RoundTripper

	at *time.Time
}

// RoundTrip implements http.RoundTripper.
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

// readLeases asks for the one that is wanted, or for all at once.
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

// heartbeatsOr reads those of the clusters of these Applications, and warns if that
// fails: what the Applications themselves say is there all the same.
func (e *environment) heartbeatsOr(ctx context.Context, items []item) heartbeats {
	var clusters []string
	for _, i := range items {
		if i.admitted() {
			clusters = append(clusters, application.ClusterOf(i.stored))
		}
	}
	if len(clusters) == 0 {
		return heartbeats{}
	}
	beats, err := e.heartbeats(ctx, clusters...)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(e.ErrOut, "Warning: whether the agents are heard is not known:", err)
	}
	return beats
}
