package pacing

import "time"

// Failures counts the failed writes of an object in a row. The queue waits longer after each
// failure. Events of the competing writer that causes the drift do not wait, and must not set the pace.
type Failures struct {
	count int
	until time.Time
}

// Record counts a failure.
func (f *Failures) Record(now time.Time) {
	f.count++
	f.until = now.Add(pause(f.count - fastRepairs))
}

// RestsUntil returns when the object may be written again, the zero time if it may be now.
func (f Failures) RestsUntil(now time.Time) time.Time {
	if !f.until.After(now) {
		return time.Time{}
	}
	return f.until
}
