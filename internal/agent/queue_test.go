package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An Application that fails without end is tried at most ten times a minute, and finally once
// a minute. Applications that fail together are retried at different times.
func TestBackoff(t *testing.T) {
	limiter := newBackoff(func(types.NamespacedName) bool { return false })
	request := ctrl.Request{NamespacedName: appName}
	const day = 24 * time.Hour
	passes := []time.Duration{0}
	for at := time.Duration(0); at < day; {
		wait := limiter.When(request)
		if wait < 4*firstRetry/5 || wait > lastRetry {
			t.Fatalf("after %d failures it waits %s", len(passes), wait)
		}
		at += wait
		passes = append(passes, at)
	}
	const most = 10
	for i, at := range passes {
		if i >= most && at-passes[i-most] < time.Minute {
			t.Errorf("%d passes from %s to %s", most+1, passes[i-most], at)
		}
	}
	if last := passes[len(passes)-1] - passes[len(passes)-2]; last < 4*lastRetry/5 {
		t.Errorf("at last it waits %s", last)
	}
	different := map[time.Duration]bool{}
	for range 20 {
		limiter.Forget(request)
		different[limiter.When(request)] = true
	}
	if len(different) < 10 {
		t.Errorf("20 first waits have %d lengths", len(different))
	}
}

// refused fails each pass after a moment, and counts the tries.
type refused struct {
	turns *rolloutLimiter

	mu    sync.Mutex
	tries map[types.NamespacedName]int
}

func (r *refused) Reconcile(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer r.turns.end(request.NamespacedName)
	if !r.turns.take(request.NamespacedName) {
		return ctrl.Result{}, nil
	}
	r.mu.Lock()
	r.tries[request.NamespacedName]++
	r.mu.Unlock()
	<-time.After(10 * time.Millisecond)
	return ctrl.Result{}, errors.New("the API server refuses it")
}

// A hundred Applications that fail wait for their turns again and again. The controller tries none of them more
// often for that.
func TestBackoffWithTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, applications, most = 8, 100, 10
		var n notifications
		passes := &refused{turns: newRolloutLimiter(workers, n.notifyFirst, never), tries: map[types.NamespacedName]int{}}
		looping, err := controller.NewUnmanaged("refused", controller.Options{
			Reconciler: passes, MaxConcurrentReconciles: workers, RateLimiter: newBackoff(passes.turns.isWaiting), SkipNameValidation: new(true),
			LogConstructor: func(*ctrl.Request) logr.Logger { return logr.Discard() },
		})
		kit.Must(t, err)
		kit.Must(t, looping.Watch(source.Func(n.start)))
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		go func() {
			synctest.Wait()
			for i := range applications {
				n.notify(numbered(i))
			}
		}()
		kit.Must(t, looping.Start(ctx))
		for i := range applications {
			if tries := passes.tries[numbered(i)]; tries < most/2 || tries > most {
				t.Errorf("%s is tried %d times in a minute", numbered(i), tries)
			}
		}
	})
}

// Notifications of the observers reach the controller's queue, and many events of one
// Application become one. An Application that waits after a failure waits no longer.
func TestNotifications(t *testing.T) {
	queue := priorityqueue.New[ctrl.Request]("test") // the same type as the controller's
	defer queue.ShutDown()
	var n notifications
	kit.Must(t, n.start(t.Context(), queue))
	n.notifyAfter(appName, time.Hour)
	n.notify(appName)
	n.notify(appName)
	n.notifyAfter(otherName, 0)
	for _, want := range []string{appName.Name, otherName.Name} {
		got, _ := queue.Get()
		check.Equal(t, "in the queue", want, got.Name)
	}
	check.Equal(t, "left in the queue", 0, queue.Len())
}

// Applications are a crowd from the start until the queue is empty for the first time.
func TestCrowded(t *testing.T) {
	queue := priorityqueue.New[ctrl.Request]("crowded")
	defer queue.ShutDown()
	var n notifications
	check.Equal(t, "a crowd before there is a queue", false, n.crowded())
	kit.Must(t, n.start(t.Context(), queue))
	n.notify(appName)
	check.Equal(t, "a crowd with an Application in the queue", true, n.crowded())
	queue.Done(first(queue.Get()))
	n.notifyAfter(appName, time.Hour)
	check.Equal(t, "an Application that waits for its time is a crowd", false, n.crowded())
	n.notify(otherName)
	check.Equal(t, "an Application after the first passes is a crowd", false, n.crowded())
}

func first(request ctrl.Request, _ bool) ctrl.Request { return request }

// An Application without news comes after those with news, and one that has waited for a turn before them.
// Notifications before the queue exists are dropped.
func TestNotifyAll(t *testing.T) {
	var n notifications
	n.notify(appName)
	n.notifyAll([]types.NamespacedName{appName})
	queue := priorityqueue.New[ctrl.Request]("all")
	defer queue.ShutDown()
	kit.Must(t, n.start(t.Context(), queue))
	n.notifyAll([]types.NamespacedName{appName})
	n.notify(otherName)
	n.notifyFirst(numbered(1))
	for _, want := range []string{"1", otherName.Name, appName.Name} {
		got, _ := queue.Get()
		check.Equal(t, "in the queue", want, got.Name)
	}
	check.Equal(t, "left in the queue", 0, queue.Len())
}

func numbered(n int) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: fmt.Sprint(n)}
}

func never() bool { return false }

// With eight workers, four Applications have a turn. The others are woken in order, one for each that ends.
func TestTurns(t *testing.T) {
	var woken []string
	turns := newRolloutLimiter(8, func(name types.NamespacedName) { woken = append(woken, name.Name) }, never)
	var taken []int
	for n := range 7 {
		if turns.take(numbered(n)) {
			taken = append(taken, n)
		}
		turns.take(numbered(n)) // asks again: it keeps its turn, or its place
	}
	check.Equal(t, "with a turn", []int{0, 1, 2, 3}, taken)
	for _, waits := range []int{4, 5, 6} {
		turns.end(numbered(waits)) // its pass ends without a turn
	}
	check.Equal(t, "woken while all turns are taken", []string(nil), woken)
	turns.end(numbered(2))
	turns.end(numbered(0))
	check.Equal(t, "woken", []string{"4", "5"}, woken)
	check.Equal(t, "it takes the turn of one that was woken", false, turns.take(numbered(7)))
	check.Equal(t, "what was woken has a turn", true, turns.take(numbered(4)))
	turns.end(numbered(5)) // it was woken, and needs no turn any more
	check.Equal(t, "woken next", []string{"4", "5", "6"}, woken)
}

// An Application that is woken before its pass without a turn has ended keeps the turn for its next pass.
func TestTurnsInAPass(t *testing.T) {
	woken := 0
	turns := newRolloutLimiter(2, func(types.NamespacedName) { woken++ }, never)
	turns.take(numbered(1))
	check.Equal(t, "the second has a turn", false, turns.take(numbered(2)))
	check.Equal(t, "the second waits", true, turns.isWaiting(numbered(2)))
	check.Equal(t, "they wait", 1, turns.count())
	turns.end(numbered(1))
	turns.end(numbered(2))
	check.Equal(t, "woken", 1, woken)
	check.Equal(t, "the second still waits", true, turns.isWaiting(numbered(2)))
	check.Equal(t, "a third has its turn", false, turns.take(numbered(3)))
	check.Equal(t, "the second has a turn", true, turns.take(numbered(2)))
	check.Equal(t, "the second waits", false, turns.isWaiting(numbered(2)))
}

// There is no limit until all Applications had their first pass, and afterwards it counts only those that
// began then.
func TestTurnsAfterTheStart(t *testing.T) {
	isCrowded := true
	turns := newRolloutLimiter(4, nil, func() bool { return isCrowded })
	for n := range 10 {
		check.Equal(t, fmt.Sprintf("%d has a turn", n), true, turns.take(numbered(n)))
	}
	isCrowded = false
	for n := 10; n < 13; n++ {
		check.Equal(t, fmt.Sprintf("%d has a turn", n), n < 12, turns.take(numbered(n)))
	}
}
