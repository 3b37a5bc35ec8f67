package reconcile

import (
	"time"
)

// OtherHistory reserves the turn for another Application's write.
func (r *Reconciler) OtherHistory(now time.Time) { r.statusLimiter.Reserve(now) }
