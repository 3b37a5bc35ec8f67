package pacing

import (
	"testing"
	"time"
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
		if got := w.Delay(row.next, &Turns{}, at.Add(leastInterval)); got != row.want {
			t.Errorf("%s is due in %s, want %s", what, got, row.want)
		}
	}
}

// What is not urgent takes a turn when its interval is over, and keeps it until it is written
// or there is nothing to write.
func TestTurns(t *testing.T) {
	for _, urgency := range []Urgency{Texts, Records} {
		var turns Turns
		w, at := written(Records)
		at = at.Add(textInterval)
		for range pacedAtOnce + 2 {
			turns.Reserve(at)
		}
		const wait = 3 * time.Second / pacedPerSecond
		for _, after := range []time.Duration{0, wait / 2, wait} {
			if got := w.Delay(urgency, &turns, at.Add(after)); got != wait-after {
				t.Errorf("urgency %d after %s: due in %s, want %s", urgency, after, got, wait-after)
			}
		}
		if got := w.Delay(Urgent, &turns, at); got != 0 {
			t.Errorf("another state is due in %s", got)
		}
		for _, reset := range []func(){w.RecordStored, func() { w.RecordWrite(urgency, at.Add(wait)) }} {
			if reset(); !w.turn.IsZero() {
				t.Error("the turn of a write that was sent, or is not needed, is used for the next")
			}
		}
	}
}

// The first write of a process, and the one after a failure, need not wait.
func TestFirstWriteNeedNotWait(t *testing.T) {
	w, at := written(Records)
	w.RecordFailure()
	for _, urgency := range []Urgency{Texts, Records, Urgent} {
		if got := w.Delay(urgency, &Turns{}, at); got != 0 {
			t.Errorf("urgency %d is due in %s", urgency, got)
		}
	}
}
