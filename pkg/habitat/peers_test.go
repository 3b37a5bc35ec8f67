package habitat_test

import (
	"fmt"
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
		})
	}
}

// For any Pods: there is a peer exactly if a Pod can be the peer, and its address is that of
// such a Pod. The current peer stays while it can, and the order of the Pods does not matter.
func FuzzChoosePeer(f *testing.F) {
	f.Add("", []byte{})
	f.Add("10.0.0.1", []byte{0x01, 0x00, 0x11, 0x01, 0x22, 0x07})
	f.Add("10.0.0.2", []byte{0x32, 0x00, 0x21, 0x03, 0x10, 0x01})
	f.Add("10.0.0.9", []byte{0x00, 0x00, 0x00, 0x00, 0x01, 0x00})
	f.Fuzz(func(t *testing.T, current string, pods []byte) {
		given := podsOf(pods)
		chosen := habitat.ChoosePeer(current, given)
		can := map[string]bool{}
		for _, p := range given {
			if p.Running && !p.Deleted && p.IP != "" {
				can[p.IP] = true
			}
		}
		switch {
		case (chosen == "") != (len(can) == 0), chosen != "" && !can[chosen]:
			t.Errorf("%q is chosen, and %v can be", chosen, can)
		case can[current] && chosen != current:
			t.Errorf("%q is chosen in the place of %q", chosen, current)
		case habitat.ChoosePeer(chosen, given) != chosen:
			t.Errorf("%q is chosen, and another one the next time", chosen)
		}
		slices.Reverse(given)
		for range given {
			check.Equal(t, "peer, in another order", chosen, habitat.ChoosePeer(current, given))
			given = append(given[1:], given[0])
		}
	})
}

// podsOf returns a Pod for each two bytes, with few distinct names, addresses and times.
func podsOf(text []byte) []habitat.Pod {
	var pods []habitat.Pod
	for ; len(text) >= 2 && len(pods) < 50; text = text[2:] {
		p := habitat.Pod{
			Name:    fmt.Sprint("pod-", text[0]>>4),
			Running: text[1]&1 == 0,
			Deleted: text[1]&6 == 6,
			Started: after(int(text[1] >> 5)),
		}
		if address := text[0] & 7; address > 0 {
			p.IP = fmt.Sprint("10.0.0.", address)
		}
		pods = append(pods, p)
	}
	return pods
}
