package right

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// shardOf returns the shard, of so many, that has the Applications of a namespace.
func shardOf(namespace string, shards int) int {
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(namespace)) // a hash returns no errors
	return int(digest.Sum32() % uint32(shards))
}

// division is what a Lease says about the number of shards.
type division struct {
	// shards is the number by which its holder divides the Applications.
	shards int
	// before is the largest number by which other processes may still do so; 0: none does. Only the Lease of the
	// first shard has it.
	before int
}

// divisionOf expects the worst of a Lease that cannot be read.
func divisionOf(lease *coordinationv1.Lease) division {
	shards, err := countOf(lease, application.ShardsAnnotation, 1)
	before, failure := countOf(lease, application.ShardsBeforeAnnotation, 0)
	if err != nil || failure != nil {
		return division{before: application.MostShards}
	}
	return division{shards, before}
}

func countOf(lease *coordinationv1.Lease, annotation string, without int) (int, error) {
	if lease == nil || lease.Annotations[annotation] == "" {
		return without, nil
	}
	count, err := strconv.Atoi(lease.Annotations[annotation])
	if err == nil && (count < 1 || count > application.MostShards) {
		err = strconv.ErrRange
	}
	return count, err
}

// mark writes the division to a Lease. An agent that was never divided leaves no mark.
func (d division) mark(lease *coordinationv1.Lease) {
	for annotation, count := range map[string]int{application.ShardsAnnotation: d.shards, application.ShardsBeforeAnnotation: d.before} {
		if count <= 1 {
			delete(lease.Annotations, annotation)
			continue
		}
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[annotation] = strconv.Itoa(count)
	}
}

// shardLeases are the Leases on the target, one for each shard, of which a process takes one.
type shardLeases struct {
	// shards is the number by which this process divides the Applications.
	shards int
	all    []*leaseRecord // of all shards that there can be
	// own is the Lease that this process has, of this shard; nil: none.
	own   *leaseRecord
	shard int
	// alone: no other process divides the Applications by another number.
	alone bool
}

// newShardLeases makes the Leases as copies of a pattern.
func newShardLeases(cluster string, shards int, pattern leaseRecord) *shardLeases {
	s := &shardLeases{shards: shards}
	for shard := range application.MostShards {
		lease := pattern
		lease.name = application.ShardLease(cluster, shard)
		s.all = append(s.all, &lease)
	}
	return s
}

// take takes the first Lease that is free. It returns the time from which that lasts, zero if there is none.
func (s *shardLeases) take(ctx context.Context) (from time.Time, err error) {
	for shard, lease := range s.all[:s.shards] {
		free := func() (bool, error) { return lease.isFree(), nil }
		from, err = lease.ask(ctx, false, func() *coordinationv1.Lease { return s.claimOf(shard) }, free)
		switch {
		case err != nil:
			return time.Time{}, err
		case !from.IsZero():
			s.own, s.shard = lease, shard
			return from, nil
		}
	}
	return time.Time{}, nil
}

// claim is the own Lease with the own division.
func (s *shardLeases) claim() *coordinationv1.Lease { return s.claimOf(s.shard) }

func (s *shardLeases) claimOf(shard int) *coordinationv1.Lease {
	ours := division{shards: s.shards}
	if shard == 0 && !s.alone {
		ours.before = s.before()
	}
	wanted := s.all[shard].claim()
	ours.mark(wanted)
	return wanted
}

// before is the largest number by which other processes may still divide the Applications when this one takes the Lease
// of the first shard. If the Lease is new, it may have been deleted while they act.
func (s *shardLeases) before() int {
	first := s.all[0].known
	if first == nil && s.shards > 1 {
		return application.MostShards
	}
	found := divisionOf(first)
	if found.shards == s.shards {
		return found.before
	}
	return max(found.before, found.shards)
}

// isAlone reports whether no other process divides the Applications by another number. Processes with different
// numbers would act for the same Application.
//
// The first shard decides on the number. It writes its own to its Lease, and waits until each other Lease is free or
// has the same number. It takes an expired one away from its holder, which could otherwise renew it later. Every other
// shard reads the Lease of the first one after it has written its own. So of two processes with different numbers, at
// least one sees the other.
func (s *shardLeases) isAlone(ctx context.Context) (_ bool, err error) {
	switch {
	case s.alone:
	case s.shard == 0:
		s.alone, err = s.firstIsAlone(ctx)
	default:
		s.alone, err = s.laterIsAlone(ctx)
	}
	return s.alone, err
}

func (s *shardLeases) firstIsAlone(ctx context.Context) (bool, error) {
	most := max(s.shards, divisionOf(s.own.known).before)
	for _, other := range s.all[1:most] {
		if err := other.read(ctx); err != nil {
			return false, err
		}
		if other.holder() == "" || divisionOf(other.known).shards == s.shards {
			continue
		}
		if !other.isFree() {
			return false, nil
		}
		if err := other.revoke(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// laterIsAlone reports the same for every other shard. It gives the own Lease back if the first shard has another
// number, or no holder: its Lease has to be taken before.
func (s *shardLeases) laterIsAlone(ctx context.Context) (bool, error) {
	first := s.all[0]
	if err := first.read(ctx); err != nil {
		return false, err
	}
	found := divisionOf(first.known)
	if !first.isFree() && found.shards == s.shards {
		return found.before == 0, nil
	}
	given := s.own
	s.own = nil
	return false, given.giveBack(ctx)
}
