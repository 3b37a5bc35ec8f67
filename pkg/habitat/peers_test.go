package habitat_test

import (
	"slices"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/check"
)

// after returns the time so many seconds after the start.
func after(seconds int) time.Time {
	return time.Date(2024, 1, 31, 23, 59, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// pod returns a Pod, by default one that can be the peer.
func pod(name, ip string, started int, changes ...func(*habitat.Pod)) habitat.Pod {
	p := habitat.Pod{Name: name, IP: ip, Running: true, Started: after(started)}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func pending(p *habitat.Pod) { p.Running = false }
func deleted(p *habitat.Pod) { p.Deleted = true }

func TestChoosePeer(t *testing.T) {
	for _, test := range []struct {
		why     string
		current string
		pods    []habitat.Pod
		want    string
	}{
		{"no Pods, no peer", "", nil, ""},
		{"the last Pod is gone", "10.0.0.1", nil, ""},
		{"the first Pod", "", []habitat.Pod{pod("a", "10.0.0.1", 0)}, "10.0.0.1"},
		{"the oldest", "", []habitat.Pod{pod("a", "10.0.0.1", 9), pod("b", "10.0.0.2", 3), pod("c", "10.0.0.3", 5)}, "10.0.0.2"},
		{"of those of one age the first by name", "", []habitat.Pod{pod("c", "10.0.0.1", 0), pod("a", "10.0.0.3", 0), pod("b", "10.0.0.2", 0)}, "10.0.0.3"},
		{"an older Pod is no reason to change", "10.0.0.1", []habitat.Pod{pod("a", "10.0.0.1", 9), pod("b", "10.0.0.2", 3)}, "10.0.0.1"},
		{"the current one is gone", "10.0.0.9", []habitat.Pod{pod("a", "10.0.0.1", 9), pod("b", "10.0.0.2", 3)}, "10.0.0.2"},
		{"the current one is about to go", "10.0.0.2", []habitat.Pod{pod("a", "10.0.0.1", 9), pod("b", "10.0.0.2", 3, deleted)}, "10.0.0.1"},
		{"the current one has ended", "10.0.0.2", []habitat.Pod{pod("a", "10.0.0.1", 9), pod("b", "10.0.0.2", 3, pending)}, "10.0.0.1"},
		{"one that is about to go is better than none no more", "10.0.0.2", []habitat.Pod{pod("b", "10.0.0.2", 3, deleted)}, ""},
		{"a Pod without address", "", []habitat.Pod{pod("a", "", 0), pod("b", "10.0.0.2", 3)}, "10.0.0.2"},
		{"only a Pod without address", "", []habitat.Pod{pod("a", "", 0)}, ""},
		{"only a Pod that does not run", "", []habitat.Pod{pod("a", "10.0.0.1", 0, pending)}, ""},
		{"an address that somebody made up", "not an address", []habitat.Pod{pod("a", "10.0.0.1", 0)}, "10.0.0.1"},
		{"two Pods of one node have its address", "10.0.0.1", []habitat.Pod{pod("a", "10.0.0.1", 0, deleted), pod("b", "10.0.0.1", 3)}, "10.0.0.1"},
		{"IPv6", "", []habitat.Pod{pod("a", "fd00::1", 0)}, "fd00::1"},
	} {
		t.Run(test.why, func(t *testing.T) {
			before := slices.Clone(test.pods)
			check.Equal(t, "peer", test.want, habitat.ChoosePeer(test.current, test.pods))
			check.Equal(t, "the Pods afterwards", before, test.pods)
			slices.Reverse(test.pods)
			check.Equal(t, "peer, in another order", test.want, habitat.ChoosePeer(test.current, test.pods))
			check.Equal(t, "the next peer", test.want, habitat.ChoosePeer(test.want, test.pods))
		})
	}
}
