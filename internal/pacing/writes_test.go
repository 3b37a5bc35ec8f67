package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// written is when the status was last written, with always something to write before.
func written(urgency Urgency) (w *StatusWrites, at time.Time) {
	w, at = &StatusWrites{}, time.Unix(1_000_000, 0)
	for range 4 {
		w.RecordWrite(Records, at)
		at = at.Add(w.interval)
	}
	w.RecordWrite(urgency, at)
	return w, at
}

// A change of the state waits no longer than one of a condition. In modes without writes, an
// Application is drifted before and after.
func TestWhenAStatusIsDue(t *testing.T) {
	for what, row := range map[string]struct {
		last, next Urgency
		want       time.Duration
	}{
		"nothing":                              {Records, Nothing, 0},
		"another state or reason":              {Records, Urgent, 0},
		"nothing that people wait for":         {Records, Records, mostInterval - leastInterval},
		"a text after others":                  {Records, Texts, textInterval - leastInterval},
		"a text after a text":                  {Texts, Texts, textInterval - leastInterval},
		"the first text after another state":   {Urgent, Texts, mostInterval - leastInterval},
		"records after another state":          {Urgent, Records, mostInterval - leastInterval},
		"another state right after the former": {Urgent, Urgent, 0},
	} {
		w, at := written(row.last)
		check.Equal(t, what, row.want, w.Delay(row.next, &StatusWriteLimiter{}, at.Add(leastInterval)))
	}
}

// What is not urgent takes a turn when its interval is over, and keeps it until it is written
// or there is nothing to write.
func TestTurns(t *testing.T) {
	for _, urgency := range []Urgency{Texts, Records} {
		var turns StatusWriteLimiter
		w, at := written(Records)
		at = at.Add(textInterval)
		for range pacedAtOnce + 2 {
			turns.Reserve(at)
		}
		const wait = 3 * time.Second / pacedPerSecond
		for _, after := range []time.Duration{0, wait / 2, wait} {
			check.Equal(t, fmt.Sprintf("urgency %d after %s", urgency, after), wait-after, w.Delay(urgency, &turns, at.Add(after)))
		}
		check.Equal(t, "another state", 0, w.Delay(Urgent, &turns, at))
		for _, reset := range []func(){w.RecordStored, func() { w.RecordWrite(urgency, at.Add(wait)) }} {
			reset()
			check.Equal(t, "a turn is left of a write that was sent, or is not needed", false, !w.turn.IsZero())
		}
	}
}

// The first write of a process, and the one after a failure, need not wait.
func TestFirstWriteNeedNotWait(t *testing.T) {
	w, at := written(Records)
	w.RecordFailure()
	for _, urgency := range []Urgency{Texts, Records, Urgent} {
		check.Equal(t, fmt.Sprintf("urgency %d", urgency), 0, w.Delay(urgency, &StatusWriteLimiter{}, at))
	}
}
