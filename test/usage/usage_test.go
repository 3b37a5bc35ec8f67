package usage

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestOfProcess(t *testing.T) {
	stat := "4711 (a (b) c) S 1 4711 4711 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 1000 900000 300 18446744073709551615 1"
	got, err := ofProcess(stat)
	if want := (Usage{CPU: 3 * time.Second, Resident: 300 * int64(os.Getpagesize())}); err != nil || got != want {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
	for _, wrong := range []string{"", "4711 (a) S 1 2 3", strings.Replace(stat, " 250 ", " much ", 1)} {
		if _, err := ofProcess(wrong); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

func TestAgeIn(t *testing.T) {
	stat := "4711 (a (b) c) S 1 4711 4711 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 1000 900000 300"
	got, err := ageIn(stat, "12.50 20.00\n")
	if err != nil || got != 2500*time.Millisecond {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := ageIn("4711 (a) S 1", "12.50 20.00"); err == nil {
		t.Error("half a line was read")
	}
	if _, err := ageIn(stat, ""); err == nil {
		t.Error("no uptime was read")
	}
}

func TestPeakIn(t *testing.T) {
	got, err := peakIn("Name:\tagent\nVmPeak:\t 1234567 kB\nVmHWM:\t   41000 kB\nVmRSS:\t   40000 kB\n")
	if err != nil || got != 41000<<10 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := peakIn("Name:\tagent\n"); err == nil {
		t.Error("a process that has ended has memory")
	}
}

// Waiting is not busy; time of another machine counts as used.
func TestOfMachine(t *testing.T) {
	got, err := ofMachine("cpu  100 20 3 9999 8888 7777 6666 5 0 0\ncpu0 1 1 1 1\n")
	if err != nil || got != 1280*time.Millisecond {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := ofMachine("intr 1 2 3\n"); err == nil {
		t.Error("a file without processors was read")
	}
}

// This process uses resources.
func TestSelf(t *testing.T) {
	busyBefore, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	before, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
		before.Resident++
	}
	after, err := Of(os.Getpid())
	if err != nil || after.CPU < before.CPU || after.Resident == 0 {
		t.Errorf("%v after %v: %v", after, before, err)
	}
	peak, err := Peak(os.Getpid())
	if err != nil || peak < after.Resident/2 {
		t.Errorf("a peak of %d, resident %d: %v", peak, after.Resident, err)
	}
	if busy, err := Machine(); err != nil || busy < busyBefore {
		t.Errorf("%s after %s: %v", busy, busyBefore, err)
	}
}
