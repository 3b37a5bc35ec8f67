package right

import (
	"context"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/resync"
)

// leaseRecord is a Lease as this process knows it.
type leaseRecord struct {
	client          coordinationv1client.LeaseInterface
	namespace, name string
	server          string // in errors
	identity        string // of this process
	lasts           time.Duration

	known *coordinationv1.Lease // nil: there is none, as far as is known
	since time.Time             // when this version was first seen, or that there is no Lease
	// latest is the version of the last answer, also if the Lease is gone since; empty before the first.
	latest string
}

func (l *leaseRecord) String() string {
	return fmt.Sprintf("Lease %s/%s on the %s", l.namespace, l.name, l.server)
}

// judge decides whether the known version of the Lease may be taken or renewed.
type judge func() (take bool, err error)

// ask takes the Lease or renews it, and returns the time from which it lasts; zero
// if it is not ours. It renews our own Lease without reading it first. It returns
// resync.ErrRestored if the server has an older version than before.
func (l *leaseRecord) ask(ctx context.Context, ours bool, claim func() *coordinationv1.Lease, may judge) (from time.Time, err error) {
	if ours {
		if from, err = l.write(ctx, claim()); !isOutdated(err) {
			return from, err
		}
	}
	if err := l.read(ctx); err != nil {
		return time.Time{}, err
	}
	if take, err := may(); err != nil || !take {
		return time.Time{}, err
	}
	if from, err = l.write(ctx, claim()); !ours && isOutdated(err) {
		return time.Time{}, nil // another process was quicker
	}
	return from, err
}

// isOutdated reports whether a write was based on an older version of the Lease.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

func (l *leaseRecord) read(ctx context.Context) error {
	found, err := l.client.Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if l.known != nil || l.since.IsZero() {
			l.known, l.since = nil, time.Now()
		}
	case err != nil:
		return fmt.Errorf("get %s: %w", l, err)
	case l.known == nil || l.known.UID != found.UID || l.known.ResourceVersion != found.ResourceVersion:
		return l.saw(found)
	}
	return nil
}

// saw records an answer. It returns resync.ErrRestored if the answer before was newer.
func (l *leaseRecord) saw(found *coordinationv1.Lease) error {
	former := l.latest
	l.known, l.since, l.latest = found, time.Now(), found.ResourceVersion
	if err := resync.CheckOrder(former, l.latest); err != nil {
		return fmt.Errorf("%s: %w", l, err)
	}
	return nil
}

// write returns when it began. The server cannot have written earlier, so a period that
// we count from then ends before the server's.
func (l *leaseRecord) write(ctx context.Context, wanted *coordinationv1.Lease) (began time.Time, err error) {
	began = time.Now()
	var written *coordinationv1.Lease
	if wanted.ResourceVersion == "" {
		written, err = l.client.Create(ctx, wanted, metav1.CreateOptions{})
	} else {
		written, err = l.client.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("write %s: %w", l, err)
	}
	return began, l.saw(written)
}

// claim returns the Lease with this process as its holder. Its times are informative.
func (l *leaseRecord) claim() *coordinationv1.Lease {
	now := metav1.NowMicro()
	wanted := l.known.DeepCopy()
	switch {
	case wanted == nil:
		wanted = &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name},
			Spec:       coordinationv1.LeaseSpec{AcquireTime: &now, LeaseTransitions: new(int32(0))},
		}
	case !l.isOurs():
		wanted.Spec.AcquireTime = &now
		wanted.Spec.LeaseTransitions = new(l.term() + 1)
	}
	wanted.Spec.HolderIdentity = &l.identity
	wanted.Spec.LeaseDurationSeconds = new(int32(math.Ceil(l.lasts.Seconds())))
	wanted.Spec.RenewTime = &now
	return wanted
}

// giveBack clears the holder, if it is this process.
func (l *leaseRecord) giveBack(ctx context.Context) error {
	for {
		if err := l.read(ctx); err != nil {
			return err
		}
		if !l.isOurs() {
			return nil
		}
		if err := l.revoke(ctx); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// revoke clears the holder.
func (l *leaseRecord) revoke(ctx context.Context) error {
	revoked := l.claim()
	revoked.Spec.HolderIdentity = new("")
	_, err := l.write(ctx, revoked)
	return err
}

func (l *leaseRecord) isOurs() bool { return l.holder() == l.identity }

// holder is empty if no process has it.
func (l *leaseRecord) holder() string {
	if l.known == nil {
		return ""
	}
	return ptr.Deref(l.known.Spec.HolderIdentity, "")
}

// term counts how often the Lease has come to another holder.
func (l *leaseRecord) term() int32 {
	if l.known == nil {
		return 0
	}
	return ptr.Deref(l.known.Spec.LeaseTransitions, 0)
}

// isFree reports whether the Lease may be taken: it has no holder, or its holder has not
// renewed it for its whole duration, by our clock.
func (l *leaseRecord) isFree() bool {
	if l.holder() == "" || l.isOurs() {
		return true
	}
	lasts := l.lasts
	if seconds := ptr.Deref(l.known.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		lasts = time.Duration(seconds) * time.Second
	}
	return time.Since(l.since) >= lasts
}

// pause waits, and reports whether the context has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
