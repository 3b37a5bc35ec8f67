package reconcile

import (
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// HeldUntil gives until when an agent with this limit would hold an object whose
// annotation says what is asked, for whoever is about to write it; the zero time if it
// would not. Former is the hold that the status has, nil if there is none.
func HeldUntil(wishes application.Wishes, former *application.Hold, asked string, limit time.Duration, now time.Time) time.Time {
	until, _ := heldUntil(wishes, former, asked, limit, now)
	return until
}
