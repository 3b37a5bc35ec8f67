package ha

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

// One of three replicas, which have a shard each, is killed in the middle of drifts in all shards. A fourth one takes
// its place: each drift is repaired once, and no namespace has two agents at a time.
func TestKilledShardIsTakenOver(t *testing.T) {
	dismissAgents(t)
	replicas := newShards(t, "shard", 4, 3)
	startAll(t, replicas)
	s := newShelves(t, replicas)
	victim := s.owner
	stream := s.disturb(t)
	s.awaitMiddle(t)
	kit.Must(t, victim.process.Kill())
	victim.process = nil
	killed := time.Now()
	kit.Must(t, <-stream)

	s.awaitRepaired(t)
	if agents := s.check(t); len(agents) != 4 {
		t.Errorf("%d agents have repaired, want three and the one in the place of the killed one", len(agents))
	}
	t.Logf("everything was repaired %s after the kill", time.Since(killed).Round(time.Millisecond))
}

// shardLease are flags for a Lease that a replica keeps on a busy machine. One that loses it ends, and nothing starts it
// again here, as a Deployment would.
var shardLease = []string{
	"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s", "--heartbeat-interval=5s",
}

// newShards makes replicas, which end with the test.
func newShards(t *testing.T, name string, count, shards int) []*replica {
	t.Helper()
	var replicas []*replica
	for i := range count {
		r := newReplica(t, fmt.Sprintf("%s-%d", name, i), append([]string{"--kubeconfig", "{hub}", fmt.Sprintf("--shards=%d", shards)}, shardLease...)...)
		t.Cleanup(func() { r.end(t) })
		replicas = append(replicas, r)
	}
	return replicas
}

// startAll starts replicas, and waits until they are ready.
func startAll(t *testing.T, replicas []*replica) {
	t.Helper()
	for _, r := range replicas {
		r.start(t)
	}
	kit.Eventually(t, func() string { return unready(t, replicas) })
}

// shelves are in several namespaces, so that each shard has some.
type shelves struct {
	all      []*shelf
	owner    *replica // of the first
	journals []*journal
	begin    kit.Mark
	replicas []*replica
}

// newShelves makes shelves until each replica that acts, which are all but one, has created the objects of one.
func newShelves(t *testing.T, replicas []*replica) *shelves {
	t.Helper()
	const fewest, most = 8, 40
	s := &shelves{begin: hub.Mark(t), replicas: replicas}
	owners, wanted := map[*replica]bool{}, max(1, len(replicas)-1)
	for len(s.all) < fewest || len(owners) < wanted {
		if len(s.all) == most {
			t.Fatalf("%d agents act for %d namespaces, want %d", len(owners), most, wanted)
		}
		next := newShelf(t, 1, 10)
		s.all = append(s.all, next)
		owner := s.ownerOf(t, next)
		owners[owner] = true
		s.owner = cmp.Or(s.owner, owner)
	}
	s.again(t)
	return s
}

// again begins new journals, for another round of drifts.
func (s *shelves) again(t *testing.T) {
	t.Helper()
	s.journals = nil
	for _, one := range s.all {
		awaitCalm(t, one.namespace)
		s.journals = append(s.journals, one.begin(t, 5))
	}
	s.begin = hub.Mark(t)
}

// ownerOf returns the replica that has created the objects of a shelf.
func (s *shelves) ownerOf(t *testing.T, of *shelf) *replica {
	t.Helper()
	var owner *replica
	kit.Eventually(t, func() string {
		created := s.begin.Requests(t, func(r kit.Request) bool {
			return r.Verb == "create" && r.Object.Resource == "configmaps" && r.Object.Namespace == of.namespace && slices.Contains(of.objects, r.Object.Name)
		})
		for _, r := range s.replicas {
			if slices.ContainsFunc(created, kit.ByCredential(r.credential)) {
				owner = r
				return ""
			}
		}
		return fmt.Sprintf("no replica has created an object in namespace %s", of.namespace)
	})
	return owner
}

// disturb changes one object of each shelf after the other in the background, for some seconds.
func (s *shelves) disturb(t *testing.T) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.disturbEach(t.Context()) }()
	return done
}

func (s *shelves) disturbEach(ctx context.Context) error {
	const pause = 100 * time.Millisecond
	for n := range s.all[0].objects {
		for _, one := range s.all {
			if err := one.disturb(ctx, one.objects[n]); err != nil {
				return err
			}
			<-time.After(pause)
		}
	}
	return nil
}

// awaitMiddle waits until half of the objects of the first shelf are repaired.
func (s *shelves) awaitMiddle(t *testing.T) { t.Helper(); s.journals[0].awaitMiddle(t) }

// awaitRepaired waits until each object is repaired, and all writes have stopped.
func (s *shelves) awaitRepaired(t *testing.T) {
	t.Helper()
	complaint := func() string {
		for i, one := range s.all {
			if text := s.journals[i].complaint(one.objects); text != "" {
				return one.namespace + ": " + text
			}
		}
		return ""
	}
	kit.Eventually(t, complaint)
	for _, one := range s.all {
		awaitCalm(t, one.namespace)
	}
	if text := complaint(); text != "" {
		t.Error(text)
	}
}

// check fails unless the audit log has one repair of each object, and the agents of a namespace follow each other. It
// returns the names of the agents that have repaired.
func (s *shelves) check(t *testing.T) []string {
	t.Helper()
	found := map[string]int{}
	for _, one := range s.all {
		made := s.begin.Requests(t, func(r kit.Request) bool { return one.isRepair(r) && s.by(r) != "" })
		change{shelf: one}.checkOnce(t, made)
		var agents []string
		for _, r := range kit.Select(made, kit.Request.IsAccepted) {
			by := s.by(r)
			found[by]++
			if len(agents) == 0 || agents[len(agents)-1] != by {
				agents = append(agents, by)
			}
		}
		if len(agents) > 2 {
			t.Errorf("namespace %s was repaired by one after the other of %v", one.namespace, agents)
		}
	}
	t.Logf("%d namespaces, repairs by agent: %v", len(s.all), found)
	return slices.Collect(maps.Keys(found))
}

// by returns the name of the replica that has sent a request, or nothing.
func (s *shelves) by(r kit.Request) string {
	at := slices.IndexFunc(s.replicas, func(one *replica) bool { return kit.ByCredential(one.credential)(r) })
	if at < 0 {
		return ""
	}
	return s.replicas[at].name
}
