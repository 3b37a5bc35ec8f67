package right

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// shardOf returns the shard, of so many, that has the Applications of a namespace.
func shardOf(namespace string, shards int) int {
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(namespace)) // a hash returns no errors
	return int(int64(digest.Sum32()) % int64(shards))
}

// division is what a Lease says about the number of shards.
type division struct {
	// shards is the number by which its holder divides the Applications.
	shards int
	// before is the largest number by which other processes may still do so; 0: none does.
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
	// taken is when this process took it. isNew: there was none.
	taken time.Time
	isNew bool
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

// take takes the first Lease that is free. It returns the time from which that lasts, zero if there is none. While the
// first shard has another number, it takes no other.
func (s *shardLeases) take(ctx context.Context) (from time.Time, err error) {
	for shard, lease := range s.all[:s.shards] {
		if shard > 0 && !s.agrees() {
			return time.Time{}, nil
		}
		free := func() (bool, error) {
			s.isNew = lease.known == nil
			return lease.isFree(), nil
		}
		from, err = lease.ask(ctx, false, func() *coordinationv1.Lease { return s.claimOf(shard) }, free)
		switch {
		case err != nil:
			return time.Time{}, err
		case !from.IsZero():
			s.own, s.shard, s.taken = lease, shard, time.Now()
			return from, nil
		}
	}
	return time.Time{}, nil
}

// claim is the own Lease with the own division.
func (s *shardLeases) claim() *coordinationv1.Lease { return s.claimOf(s.shard) }

func (s *shardLeases) claimOf(shard int) *coordinationv1.Lease {
	ours := division{shards: s.shards}
	if !s.alone {
		ours.before = s.before(shard)
	}
	wanted := s.all[shard].claim()
	ours.mark(wanted)
	return wanted
}

// agrees reports whether the first shard has a holder, as far as is known, with the number of this process.
func (s *shardLeases) agrees() bool {
	first := s.all[0]
	return !first.isFree() && divisionOf(first.known).shards == s.shards
}

// before is the largest number by which other processes may still divide the Applications when this one takes a Lease.
// If there is none, it may have been deleted while they act.
func (s *shardLeases) before(shard int) int {
	if s.all[shard].known == nil {
		return application.MostShards
	}
	found := divisionOf(s.all[shard].known)
	if shard > 0 || found.shards == s.shards {
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
		if s.alone, err = s.firstIsAlone(ctx); s.alone && divisionOf(s.own.known).before > 0 {
			_, err = s.own.write(ctx, s.claim()) // the others wait for it
		}
	default:
		s.alone, err = s.laterIsAlone(ctx)
	}
	return s.alone, err
}

func (s *shardLeases) firstIsAlone(ctx context.Context) (bool, error) {
	before, alone := divisionOf(s.own.known).before, true
	for shard := 1; shard < max(s.shards, before); shard++ {
		gone, err := s.isGone(ctx, s.all[shard], shard < before)
		if err != nil {
			return false, err
		}
		alone = alone && gone // the others are read as well: an expiry counts from the first look
	}
	return alone, nil
}

// isGone reports whether another Lease has no holder with another number, and clears an expired one. It should exist if processes divided the
// Applications by a number beyond it: then it was deleted, perhaps while its holder acts.
func (s *shardLeases) isGone(ctx context.Context, other *leaseRecord, shouldExist bool) (bool, error) {
	err := other.read(ctx)
	switch {
	case s.shards == 1 && apierrors.IsForbidden(err):
		return true, nil // a role without the Leases of shards: there are none
	case err != nil:
		return false, err
	case other.known == nil:
		return !shouldExist || s.isNew || isOver(other.since, other), nil
	case other.holder() == "" || divisionOf(other.known).shards == s.shards:
		return true, nil
	case !other.isFree():
		return false, nil
	}
	return true, other.revoke(ctx)
}

// isOver reports whether a Lease has certainly ended that was deleted, at the latest, at a time.
func isOver(deleted time.Time, lease *leaseRecord) bool { return time.Since(deleted) >= lease.lasts }

// laterIsAlone reports the same for every other shard. It gives the own Lease back if the first shard has another
// number, or no holder: its Lease has to be taken before. A Lease that was missing may have been deleted while its holder
// acts.
func (s *shardLeases) laterIsAlone(ctx context.Context) (bool, error) {
	first := s.all[0]
	if err := first.read(ctx); err != nil {
		return false, err
	}
	if s.agrees() {
		sure := divisionOf(s.own.known).before == 0 || isOver(s.taken, s.own)
		return sure && divisionOf(first.known).before == 0, nil
	}
	given := s.own
	s.own = nil
	return false, given.giveBack(ctx)
}
