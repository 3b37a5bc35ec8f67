package right

import (
	"errors"

	"github.com/krake-observer/krake-observer/internal/resync"
)

// Why a process may not write.
var (
	// ErrLost ends a process: another process holds, or has held, one of its Leases.
	ErrLost = errors.New("the Lease was lost")
	// ErrTargetIsHub ends a process: hub and target are one cluster, and must be two.
	ErrTargetIsHub = errors.New("hub and target are one cluster")
	// ErrTargetUnreachable means that the Lease on the target cannot be renewed, and
	// that no other process is known to have taken it.
	ErrTargetUnreachable = errors.New("the target is unreachable")
	// ErrNotActing means that this process has no right to act, or cannot know.
	ErrNotActing = errors.New("this agent does not act")

	errEnded = errors.New("it ends")
)

// endsProcess reports whether a process cannot go on after an error.
func endsProcess(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, resync.ErrRestored)
}

// Change is a change of the right to act.
type Change int

const (
	// Acting means that this process may act from now on. It comes once.
	Acting Change = iota
	// Refused means that it may not; [Leadership.Refusal] is the reason.
	Refused
	// TargetLost means that the target does not answer, and that nothing may be
	// written to it.
	TargetLost
	// TargetBack means that it answers again, and that no other process acted in
	// between.
	TargetBack
	// HubLost means that the hub does not answer. Writes to it wait.
	HubLost
	// HubBack means that it answers again.
	HubBack
)

// String returns the name of the constant.
func (c Change) String() string {
	return [...]string{"Acting", "Refused", "TargetLost", "TargetBack", "HubLost", "HubBack"}[c]
}
