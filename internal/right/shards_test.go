package right

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

func divided(shards int) func(*Options) { return func(o *Options) { o.Shards = shards } }

// namespaces are enough for each shard of eight to have some.
var namespaces = namesOf(64)

func namesOf(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("team-%d", i))
	}
	return names
}

// shares returns how many of the namespaces each agent owns that may write. It fails if two own the same.
func shares(t *testing.T, agents map[string]*agent, namespaces []string) map[string]int {
	t.Helper()
	owns, owners := map[string]int{}, map[string]string{}
	for name, a := range agents {
		if a.Target() != nil {
			continue
		}
		for _, namespace := range namespaces {
			if !a.Owns(namespace) {
				continue
			}
			if other := owners[namespace]; other != "" {
				t.Fatalf("%s and %s act for namespace %s", other, name, namespace)
			}
			owners[namespace] = name
			owns[name]++
		}
	}
	return owns
}

// checkAll fails unless so many agents act, and own all namespaces.
func checkAll(t *testing.T, agents map[string]*agent, want int) {
	t.Helper()
	owns, sum := shares(t, agents, namespaces), 0
	for _, share := range owns {
		sum += share
	}
	all := len(namespaces)
	if want == 0 {
		all = 0
	}
	if len(owns) != want || sum != all {
		t.Errorf("these agents act: %v, want %d for %d namespaces", owns, want, all)
	}
}

func (w *world) startAll(t *testing.T, name string, replicas, shards int) map[string]*agent {
	agents := map[string]*agent{}
	for i := range replicas {
		identity := fmt.Sprintf("%s-%d", name, i)
		agents[identity] = w.start(t, identity, divided(shards))
	}
	return agents
}

// The namespaces are spread evenly, and those of one shard are all.
func TestShardOf(t *testing.T) {
	for shards := 1; shards <= application.MostShards; shards++ {
		counts := make([]int, shards)
		for _, namespace := range namespaces {
			counts[shardOf(namespace, shards)]++
		}
		if even := len(namespaces) / shards; slices.Min(counts) < even/2 || slices.Max(counts) > 2*even {
			t.Errorf("%d shards have %v of the namespaces", shards, counts)
		}
	}
}

// Of four replicas, three act, each for a shard. The fourth takes the place of one that is gone.
func TestShards(t *testing.T) {
	for name, test := range map[string]struct {
		gone func(*world, string, *agent) error
		by   time.Duration
	}{
		"released": {func(_ *world, _ string, a *agent) error { return a.end() }, DefaultRetryPeriod},
		"killed": {func(w *world, name string, _ *agent) error { w.cut(name); return nil },
			DefaultDuration + 2*DefaultRetryPeriod},
	} {
		for shard := range 3 {
			inBubble(t, fmt.Sprintf("%s/%d", name, shard), func(t *testing.T) {
				w := newWorld()
				agents := w.startAll(t, "a", 4, 3)
				sleep(time.Minute)
				checkAll(t, agents, 3)
				leaving := w.target.holder(t, application.ShardLease(cluster, shard))
				check.Must(t, test.gone(w, leaving, agents[leaving]))
				left := agents[leaving]
				delete(agents, leaving)
				sleep(test.by)
				checkAll(t, agents, 3)
				check.Equal(t, "the one that is gone may still write", false, left.Target() == nil)
				for _, a := range agents {
					check.Equal(t, "refusal", "", a.Refusal())
				}
			})
		}
	}
}

// The Lease of a shard is deleted while its holder reaches neither server. The spare replica takes the Lease, and acts when
// the holder certainly no longer does. For the first shard, the Lease on the hub counts, too.
func TestDeletedLeaseOfAShard(t *testing.T) {
	for _, shard := range []int{1, 2} {
		inBubble(t, fmt.Sprint(shard), func(t *testing.T) {
			w := newWorld()
			agents := w.startAll(t, "a", 4, 3)
			sleep(time.Minute)
			checkAll(t, agents, 3)
			lease := application.ShardLease(cluster, shard)
			left := w.target.holder(t, lease)
			w.cut(left)
			w.target.remove(lease)
			for end := time.Now().Add(2*DefaultDuration + 2*DefaultRetryPeriod); time.Now().Before(end); sleep(100 * time.Millisecond) {
				shares(t, agents, namespaces)
			}
			delete(agents, left)
			checkAll(t, agents, 3)
		})
	}
}

// The number of shards changes as in a rolling update: the new replicas come first, then the old ones go, one after the
// other. No namespace has two agents, and in the end the new ones act for all.
func TestNumberOfShardsChanges(t *testing.T) {
	for _, test := range []struct{ from, to int }{{1, 3}, {3, 1}, {2, 3}, {3, 2}, {8, 1}, {1, 8}} {
		for order := range uint64(4) {
			inBubble(t, fmt.Sprintf("%d to %d/%d", test.from, test.to, order), func(t *testing.T) {
				w := newWorld()
				old := w.startAll(t, "old", test.from+1, test.from)
				sleep(time.Minute)
				checkAll(t, old, test.from)
				all := w.startAll(t, "new", test.to+1, test.to)
				maps.Copy(all, old)
				leaving := slices.Sorted(maps.Keys(old))
				rand.New(rand.NewPCG(order, 0)).Shuffle(len(leaving), func(i, j int) { leaving[i], leaving[j] = leaving[j], leaving[i] })
				for _, name := range leaving {
					for range 60 {
						sleep(500 * time.Millisecond)
						shares(t, all, namespaces)
					}
					if err := all[name].end(); err != nil && !strings.Contains(err.Error(), ErrLost.Error()) {
						t.Error(err)
					}
					delete(all, name)
				}
				sleep(2 * DefaultDuration)
				checkAll(t, all, test.to)
				check.Equal(t, "by what agents may still divide", "", w.target.lease(t, targetLease).Annotations[application.ShardsBeforeAnnotation])
			})
		}
	}
}

// A Lease with a number that cannot be read is that of another number: agents wait until the others have expired.
func TestUnreadableNumberOfShards(t *testing.T) {
	marked := func(text string) func(*coordinationv1.Lease) {
		return func(l *coordinationv1.Lease) {
			l.Annotations = map[string]string{application.ShardsAnnotation: text}
		}
	}
	const lasts = 80 * time.Second // the Lease of heldBy
	for _, text := range []string{"x", "0", "-1", "9", "99999999999999999999", "3.0"} {
		for name, test := range map[string]struct {
			shards int
			first  func(*coordinationv1.Lease) // the Lease of the first shard; nil: there is none
			last   string
		}{
			"of the first shard":                    {1, marked(text), "3"},
			"of another one, and the first is gone": {1, nil, "3"},
			"of another one":                        {2, nil, text},
		} {
			inBubble(t, name+"/"+text, func(t *testing.T) {
				w := newWorld()
				if test.first != nil {
					w.target.edit(t, targetLease, test.first)
				}
				w.target.edit(t, application.ShardLease(cluster, application.MostShards-1), edited(heldBy("them"), marked(test.last)))
				agents := w.startAll(t, "a", test.shards, test.shards)
				sleep(lasts - DefaultRetryPeriod)
				checkAll(t, agents, 0)
				sleep(3*DefaultRetryPeriod + retryMost)
				checkAll(t, agents, test.shards)
			})
		}
	}
}

func (w *world) threeActing(t *testing.T) map[string]*agent {
	t.Helper()
	agents := w.startAll(t, "a", 3, 3)
	sleep(time.Minute)
	checkAll(t, agents, 3)
	return agents
}

// The name of the cluster holds for all shards.
func TestShardsAndTheNameOfTheCluster(t *testing.T) {
	inBubble(t, "of another target from the start", func(t *testing.T) {
		w := newWorld()
		w.hub.edit(t, hubLease, boundTo("another target"))
		agents := w.startAll(t, "a", 3, 3)
		sleep(time.Hour)
		for name, a := range agents {
			if a.stands() != "does not act" || !strings.Contains(a.Refusal(), "DuplicateAgent") {
				t.Errorf("%s %s, refused: %q", name, a.stands(), a.Refusal())
			}
		}
	})
	inBubble(t, "given to another target", func(t *testing.T) {
		w := newWorld()
		agents := w.threeActing(t)
		w.hub.remove(hubLease)
		w.hub.edit(t, hubLease, edited(boundTo("another target"), heldBy("them")))
		sleep(longestBeat)
		for _, a := range agents {
			a.awaitLoss(t)
		}
	})
	inBubble(t, "deleted, and written again", func(t *testing.T) {
		w := newWorld()
		agents := w.threeActing(t)
		w.hub.remove(hubLease)
		sleep(2 * longestBeat)
		checkAll(t, agents, 3)
		check.Equal(t, "who holds the Lease on the hub", w.target.holder(t, targetLease), w.hub.holder(t, hubLease))
	})
	inBubble(t, "taken by another agent of the target, while the first shard has no replica", func(t *testing.T) {
		w := newWorld()
		agents := w.threeActing(t)
		first := w.target.holder(t, targetLease)
		check.Must(t, agents[first].end())
		delete(agents, first)
		w.start(t, "another", func(o *Options) { o.Namespace = "elsewhere" }).awaitActing(t, longestBeat)
		sleep(longestBeat)
		for _, a := range agents {
			a.awaitLoss(t)
		}
	})
	inBubble(t, "of another agent of the target", func(t *testing.T) {
		w := newWorld()
		w.hub.edit(t, hubLease, edited(boundTo(string(ourTarget)), boundToLease("another"), heldBy("them")))
		go func() {
			for pause(t.Context(), DefaultHeartbeat) {
				w.hub.edit(t, hubLease, heldBy("them"))
			}
		}()
		agents := w.startAll(t, "a", 3, 3)
		sleep(time.Hour)
		checkAll(t, agents, 0)
	})
}

// Processes with different numbers of shards on unreliable servers, which restart with another number when they end: no
// namespace has two that may write for it. Now and then a Lease is deleted. When all have the same number and the
// servers answer, all namespaces have one.
func TestAtMostOneMayWriteForANamespace(t *testing.T) {
	const replicas = 5
	few, acted := namesOf(12), map[int]int{} // of all pairs of shards of two and three
	for seed := range uint64(12) {
		inBubble(t, fmt.Sprint(seed), func(t *testing.T) {
			w, random := newWorld(), rand.New(rand.NewPCG(seed, 7))
			for i, s := range []*server{w.hub, w.target} {
				h := &hostile{random: rand.New(rand.NewPCG(seed, uint64(i))), server: s}
				s.setWeather(h.request)
			}
			agents, ends := map[string]*agent{}, make([]time.Time, replicas)
			names, deleted := make([]string, replicas), time.Now()
			for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); pass(50 * time.Millisecond) {
				for i := range names {
					if a := agents[names[i]]; a != nil && !hasEnded(a) {
						if time.Now().After(ends[i]) {
							a.stop()
						}
						continue
					} else if a != nil {
						delete(agents, names[i])
					}
					shards := 1 + random.IntN(3)
					names[i] = fmt.Sprintf("%d since %s", i, time.Now())
					agents[names[i]] = w.start(t, names[i], shortTimes, divided(shards))
					ends[i] = time.Now().Add(time.Duration(random.IntN(60)) * time.Second)
				}
				if time.Since(deleted) > 20*time.Second {
					deleted = time.Now()
					w.target.remove(application.ShardLease(cluster, random.IntN(3)))
				}
				for name := range shares(t, agents, few) {
					acted[agents[name].options.Shards]++
				}
			}
			w.hub.clear()
			w.target.clear()
			for _, a := range agents {
				a.stop()
				<-a.gone
			}
			agents = w.startAll(t, "last", 4, 3)
			sleep(5 * time.Minute)
			checkAll(t, agents, 3)
		})
	}
	t.Logf("with these numbers of shards, processes may write for that many moments: %v", acted)
	for shards := 1; shards <= 3; shards++ {
		if acted[shards] < 100 {
			t.Errorf("with %d shards, that shows little", shards)
		}
	}
}

// hostile is an unreliable server: it refuses requests, drops them, loses answers, or is slow.
// It also stops the process before or after a request.
type hostile struct {
	random *rand.Rand
	server *server
}

func (h *hostile) request(ctx context.Context, _, _ string) (bool, error) {
	h.server.mu.Lock()
	kind, d := h.random.IntN(100), time.Duration(h.random.Int64N(int64(6*time.Second)))
	h.server.mu.Unlock()
	switch {
	case kind < 60:
		return false, nil
	case kind < 70:
		return false, errRefused
	case kind < 75:
		return true, errRefused
	case kind < 85:
		<-ctx.Done()
		return kind%2 == 0, ctx.Err()
	case kind < 92: // slow, or stopped: the context has no effect
		pass(d)
		return false, nil
	}
	return true, stopped(func() { pass(d) })
}

// shortTimes leaves little room between the times of a holder and those of a candidate.
func shortTimes(o *Options) {
	o.Duration, o.RenewDeadline, o.RetryPeriod, o.Heartbeat = 2*time.Second, 1990*time.Millisecond, 300*time.Millisecond, time.Second
}

func hasEnded(a *agent) bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// An agent uses no clock but its own, and that one only for durations. The holder's clock is wrong, and the candidate's is right.
func TestAWrongClockTakesNoLease(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour, 10 * year, -10 * year} {
		for what, test := range map[string]struct {
			renews bool
			why    string
		}{
			"alive": {renews: true, why: "A Lease that changes is not taken, however old it says it is."},
			"dead":  {why: "A Lease that does not change is taken after its duration, however new it says it is."},
		} {
			inBubble(t, fmt.Sprintf("%s/%s", skew, what), func(t *testing.T) {
				t.Log(test.why)
				w := newWorld()
				write := func() {
					w.target.edit(t, targetLease, skewed("them", DefaultDuration, skew))
					w.hub.edit(t, hubLease, edited(boundTo(string(ourTarget)), boundToLease("another"), skewed("them", time.Minute, skew)))
				}
				write()
				if test.renews {
					go func() {
						for pause(t.Context(), DefaultRetryPeriod) {
							write()
						}
					}()
				}
				began := time.Now()
				a := w.start(t, ours)
				if test.renews {
					sleep(time.Hour)
					check.Equal(t, "the agent and the holder", []string{"does not act", "them"}, []string{a.stands(), w.target.holder(t, targetLease)})
					return
				}
				a.awaitActing(t, time.Hour)
				least, most := DefaultDuration+time.Minute, DefaultDuration+DefaultRetryPeriod+time.Minute+longestBeat
				if took := time.Since(began); took < least || took > most {
					t.Errorf("it acts after %s, want %s to %s", took, least, most)
				}
			})
		}
	}
}

// skewed is a Lease from a holder with a wrong clock.
func skewed(holder string, lasts, skew time.Duration) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = &holder
		l.Spec.LeaseDurationSeconds = new(int32(lasts.Seconds()))
		at := metav1.NewMicroTime(time.Now().Add(skew))
		l.Spec.RenewTime, l.Spec.AcquireTime = &at, &at
	}
}

// The Lease on the target is deleted while its holder can reach neither server. The hub's Lease has expired by then. The
// holder acts until its renewal is overdue, and the next one must not act before: it waits for the hub's Lease, which
// it has not seen yet.
func TestDeletedLeaseOfAHolderThatTheHubHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first := w.start(t, "first")
		first.awaitActing(t, 0)
		w.hub.cut("first")
		sleep(2 * beatsOfHub * DefaultHeartbeat)
		check.Equal(t, "without the hub the first", "acts", first.stands())
		w.target.cut("first")
		w.target.remove(targetLease)
		second, began := w.start(t, "second"), time.Now()
		for second.Target() != nil && time.Since(began) < time.Hour {
			sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); first.Target() == nil || took > 2*beatsOfHub*DefaultHeartbeat {
			t.Errorf("the second acts after %s, and then the first %s", took, first.stands())
		}
	})
}
