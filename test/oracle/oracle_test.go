package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// workers change objects at the same time, each its own. Most of the time they wait.
	workers = 4
	// peace is the number of drifts of an object after which its Application gets a new spec. That
	// resets the count of contention about a field, which would make the agent pause. One drift has at most two repairs, and 15 are fast.
	peace = 7
	// patience is the time for a repair. A refused one is tried again after 5 s, and then after 10 s.
	patience = time.Minute
	// maxWrites is the number of writes that a repair may need: the second one is for what the API
	// server changes when it carries out the first.
	maxWrites = 2
	// maxRequests is the number of requests for them, with those that the API server refuses because a controller was
	// faster, or for good.
	maxRequests = 60
	// diffs is one in how many drifts is also judged by kubectl krake diff.
	diffs = 25
)

// worker changes its objects, one after the other.
type worker struct {
	random   *rand.Rand
	subjects []*subject
	counts   map[string]int
	// deletions is one in how many changes is the deletion of the object.
	deletions int
}

// Random changes of objects of many kinds are reverted by webhook and agent, such that neither
// kubectl apply nor server-side apply would change anything afterwards.
func TestRepairsEndWhereApplyWould(t *testing.T) {
	wanted := number(t, "KRAKE_ORACLE_DRIFTS", 400)
	if testing.Short() {
		wanted = number(t, "KRAKE_ORACLE_DRIFTS", 100)
	}
	seed := chooseSeed(t)
	subjects := createAll(t, rand.New(rand.NewPCG(seed, 0)))
	t.Logf("%d objects", len(subjects))

	var mutex sync.Mutex
	counts := map[string]int{}
	begin := time.Now()
	t.Run("drifts", func(t *testing.T) {
		for i := range workers {
			w := &worker{random: rand.New(rand.NewPCG(seed, uint64(i+1))), counts: map[string]int{}, deletions: 40}
			for k := i; k < len(subjects); k += workers {
				w.subjects = append(w.subjects, subjects[k])
			}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w.work(t, wanted/workers)
				mutex.Lock()
				defer mutex.Unlock()
				for name, count := range w.counts {
					counts[name] += count
				}
			})
		}
	})
	t.Logf("%v in %s", counts, time.Since(begin).Round(time.Second))
}

// createAll creates an Application for each object of all manifests.
func createAll(t *testing.T, random *rand.Rand) (subjects []*subject) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	kit.Must(t, err)
	more := installs(t)
	if more == nil {
		t.Log("KRAKE_INSTALLS names no folder with manifests of public installations: only those in testdata are tried")
	}
	for _, file := range slices.Concat(files, more) {
		namespace := newNamespace(t, "oracle") // because two installations may use the same name
		for i, resource := range resourcesIn(t, file) {
			name := fmt.Sprintf("app-%02d", i)
			resource.SetNamespace("")
			s, err := newSubject(t, namespace, name, resource)
			if err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(file), resource.GetKind(), resource.GetName(), err)
				continue
			}
			if random.IntN(4) == 0 {
				s.observe(t, random)
			}
			subjects = append(subjects, s)
		}
	}
	for _, s := range subjects {
		s.create(t)
	}
	return slices.DeleteFunc(subjects, func(s *subject) bool {
		complaint := s.settled(t)
		if complaint != "" {
			t.Errorf("%s\n%s", complaint, s)
		}
		return complaint != ""
	})
}

// work makes a number of drifts. It stops early if many of them are not repaired.
func (w *worker) work(t *testing.T, wanted int) {
	for n := 0; n < wanted && w.counts["diverged"] < 10; {
		s := w.subjects[w.random.IntN(len(w.subjects))]
		d := w.try(t, s)
		w.counts[d.result]++
		s.report(t, &d)
		if d.result != "change refused" && d.result != "no change" {
			n++
		}
	}
}

// chooseSeed returns the seed of the random changes, and logs it.
func chooseSeed(t *testing.T) uint64 {
	t.Helper()
	seed := max(0, number(t, "KRAKE_ORACLE_SEED", int(time.Now().UnixNano()%1e6)))
	t.Logf("KRAKE_ORACLE_SEED=%d", seed)
	return uint64(seed)
}

// report fails the test if a drift has a complaint.
func (s *subject) report(t *testing.T, d *drift) {
	t.Helper()
	if d.complaint != "" {
		t.Errorf("%s: %s\n%s\n%s", d.result, strings.Join(d.what, ", then "), d.complaint, s)
	}
}

// drift is one change of an object, and what became of it.
type drift struct {
	what                   []string
	edits                  []edit
	before, drifted, final *unstructured.Unstructured
	since                  kit.Mark
	result, complaint      string
}

func (d *drift) diverge(format string, arguments ...any) {
	d.result, d.complaint = "diverged", fmt.Sprintf(format, arguments...)
	if d.drifted != nil {
		d.complaint += "\nbefore the change, and after it:\n" + kit.Difference(d.before, d.drifted)
	}
}

// try changes an object, waits for the repair, and judges it.
func (w *worker) try(t *testing.T, s *subject) (d drift) {
	t.Helper()
	if s.begin(t, &d); d.result != "" {
		return d
	}
	switch err := w.change(t, s, &d); {
	case errors.Is(err, errSame):
		d.result = "no change"
	case err != nil:
		d.result = "change refused"
	case d.drifted != nil && kit.Difference(d.before, d.drifted) == "":
		d.result = "no change"
	}
	if d.result != "" {
		return d
	}
	s.await(t, &d)
	s.judge(t, &d)
	if d.complaint == "" && (d.result == "refused" || w.random.IntN(diffs) == 0) {
		w.counts["diffs"]++
		if printed := s.diff(t); (printed == "") != (d.result != "refused") {
			d.diverge("%s, but kubectl krake diff prints: %s", d.result, printed)
		}
	}
	if d.result != "refused" && d.result != "diverged" {
		s.last = d.final
	} else if complaint := s.reset(t, d.before); complaint != "" {
		d.result, d.complaint = "diverged", d.complaint+complaint
	}
	return d
}

// begin reads the object, which must be as it was left.
func (s *subject) begin(t *testing.T, d *drift) {
	t.Helper()
	if s.drifts++; s.drifts%peace == 0 {
		s.renew(t)
	}
	last := s.last
	d.before, s.last = s.get(t), nil
	if d.before == nil {
		d.diverge("it does not exist")
	} else if last != nil && kit.Difference(last, d.before) != "" {
		d.diverge("it changed after it was repaired: %s", kit.Difference(last, d.before))
	}
	d.since = hub.Mark(t)
}

// await waits until an apply would change nothing. If the API server refuses the repair, it must
// also refuse the apply.
func (s *subject) await(t *testing.T, d *drift) {
	t.Helper()
	begin, refusedSince := time.Now(), time.Time{}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var complaint string
		var err error
		if d.final, complaint, err = s.applied(t); err == nil && complaint == "" {
			return
		}
		app := s.app.Read(t)
		if isRefusedIn(app) && (isRefused(err) || !s.isDefault && s.isRepairRefused(t, app, d.final)) {
			if complaint = s.unrepaired(t, app, d.final); complaint == "" {
				if refusedSince.IsZero() {
					refusedSince = time.Now()
				}
				if time.Since(refusedSince) > time.Second { // its own repair of the rest may have the agent ask again
					d.result = "refused"
					return
				}
			}
		} else if err != nil {
			complaint = err.Error()
		}
		if waited := time.Since(begin); waited > patience && !isPaused(app) || waited > patience+time.Minute {
			d.diverge("after %s: %s\nthe status: %+v %+v", waited, complaint, app.Status.Objects, app.Status.Conditions)
			return
		}
		time.Sleep(pause)
	}
}

func isRefused(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }

// isRefusedIn reports that the agent cannot repair its object, because the API server refuses that.
func isRefusedIn(app *application.Application) bool {
	return slices.ContainsFunc(app.Status.Objects, func(o application.ObjectStatus) bool {
		return o.Reason == status.Invalid || o.Reason == status.Forbidden
	})
}

// isPaused reports that the agent pauses because of contention, or that the API server does not answer.
func isPaused(app *application.Application) bool {
	reconciled := meta.FindStatusCondition(app.Status.Conditions, application.ReconciledCondition)
	return meta.IsStatusConditionTrue(app.Status.Conditions, application.ContendedCondition) ||
		reconciled != nil && reconciled.Status == metav1.ConditionUnknown
}

// judge finds what is wrong with a repaired object. One whose repair is refused has only to cost few requests.
func (s *subject) judge(t *testing.T, d *drift) {
	t.Helper()
	tries := d.since.Requests(t, func(r kit.Request) bool {
		isHere := r.Object.Namespace == s.object.GetNamespace() || s.object.GetNamespace() == ""
		return isHere && r.Object.Resource == s.resource && r.Name() == s.object.GetName()
	})
	if len(tries) > maxRequests {
		d.diverge("%d requests, of which the last are %s", len(tries), kit.List(tries[len(tries)-3:]))
	}
	if d.result != "" { // refused, or diverged
		return
	}
	d.result = "repaired"
	made := slices.DeleteFunc(tries, func(r kit.Request) bool { return !r.IsAccepted() || strings.Contains(r.URI, "dryRun") })
	if len(made) == 0 {
		d.result = "no drift"
	}
	if len(made) > maxWrites {
		d.diverge("%d writes: %s", len(made), kit.List(made))
		return
	}
	if diff, err := s.threeWay(t, d.final); err != nil || diff != "" {
		d.diverge("kubectl apply would change it: %v %s", err, diff)
		return
	}
	if d.drifted != nil {
		if complaint := touched(d.before, d.drifted, d.final); complaint != "" {
			d.diverge("%s", complaint)
			return
		}
		if complaint := kept(s.observed.Document(), s.types.Of(s.observed.ID()), kit.Content(d.before), kit.Content(d.drifted), kit.Content(d.final), ""); complaint != "" {
			d.diverge("%s", complaint)
			return
		}
	}
	if complaint := s.settled(t); complaint != "" {
		d.diverge("%s", complaint)
	}
}

// settled waits until the status of the Application is that of an untouched one.
func (s *subject) settled(t *testing.T) (complaint string) {
	t.Helper()
	end, pause := time.Now().Add(time.Minute), 20*time.Millisecond
	for ; ; pause = min(2*pause, 500*time.Millisecond) {
		app := s.app.Read(t)
		if meta.IsStatusConditionTrue(app.Status.Conditions, application.ReconciledCondition) && app.Status.ObservedSpec == app.Spec.Digest() {
			return ""
		}
		if time.Now().After(end) {
			return fmt.Sprintf("the status is %s: %+v %+v", app.Status.State, app.Status.Conditions, app.Status.Objects)
		}
		time.Sleep(pause)
	}
}

// errSame means that a random change changes nothing.
var errSame = errors.New("no change")

// change makes one drift, or two in one write.
func (w *worker) change(t *testing.T, s *subject, d *drift) (err error) {
	t.Helper()
	if w.random.IntN(w.deletions) == 0 {
		d.what = []string{"delete"}
		if s.holds != "" {
			return errors.New(s.holds)
		}
		return s.client.Delete(t.Context(), s.object.GetName(), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	}
	changed := d.before.DeepCopy()
	for range 1 + w.random.IntN(3)/2 {
		what, made := alter(w.random, s.object.Object, changed.Object)
		d.what, d.edits = append(d.what, what), append(d.edits, made)
	}
	if kit.Difference(d.before, changed) == "" {
		return errSame
	}
	d.drifted, err = w.write(t, s, d, changed)
	return err
}
