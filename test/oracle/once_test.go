package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// tries is the number of random changes that are tried until the API server accepts one that the agent must repair. An
// object for which none of them is one is deleted.
const tries = 30

// share is one in how many objects drifts. make oracle has all of them drift.
const share = 3

// tally counts what became of the objects of an Application that each drift once.
type tally struct {
	objects, chosen, drifted, repaired, deleted int
	exceptions                                  []string
	took                                        time.Duration
}

// driftOnce changes objects of Applications once, at random, and judges the repairs. Only a namespace need not drift, if
// the one possible change is its deletion, with everything in it.
func driftOnce(t *testing.T, apps []kit.App) {
	t.Helper()
	seed, share := chooseSeed(t), number(t, "KRAKE_ORACLE_SHARE", share)
	var mutex sync.Mutex
	table := "Application | objects | chosen | drifted | repaired | of them deleted | time | exceptions"
	t.Run("drifts", func(t *testing.T) {
		stream := uint64(0)
		for _, app := range apps {
			stream++
			random := rand.New(rand.NewPCG(seed, stream))
			t.Run(app.Name, func(t *testing.T) {
				t.Parallel()
				w := &worker{random: random, counts: map[string]int{}, deletions: 16}
				counts := w.driftEach(t, subjectsOf(t, app), share)
				if counts.drifted != counts.repaired || counts.drifted+len(counts.exceptions) != counts.chosen || counts.chosen < counts.objects/share {
					t.Errorf("not every object drifted once and was repaired: %+v", counts)
				}
				kit.Eventually(t, func() string { return isWell(t, app) })
				mutex.Lock()
				defer mutex.Unlock()
				table += fmt.Sprintf("\n%s | %d | %d | %d | %d | %d | %s | %s", app.Name, counts.objects, counts.chosen, counts.drifted, counts.repaired,
					counts.deleted, counts.took.Round(time.Second), strings.Join(counts.exceptions, "; "))
			})
		}
	})
	t.Log(table)
}

// subjectsOf returns the objects of an Application.
func subjectsOf(t *testing.T, app kit.App) (subjects []*subject) {
	t.Helper()
	read := app.Read(t)
	text, err := read.Spec.ManifestText()
	kit.Must(t, err)
	resources, err := manifest.Decode([]byte(text))
	kit.Must(t, err)
	if len(resources) != len(read.Inventory) {
		t.Errorf("%s has %d objects, and %d in its inventory", app, len(resources), len(read.Inventory))
	}
	for _, resource := range resources {
		s, err := newSubject(t, app.Namespace, app.Name, &unstructured.Unstructured{Object: resource.(map[string]any)})
		kit.Must(t, err)
		s.manifest = text
		if s.object.GetKind() == "Namespace" {
			s.holds = "the other objects would be deleted with it"
		}
		subjects = append(subjects, s)
	}
	return subjects
}

// driftEach changes one in so many of the objects, one after the other.
func (w *worker) driftEach(t *testing.T, subjects []*subject, share int) (counts tally) {
	t.Helper()
	counts = tally{objects: len(subjects), chosen: (len(subjects) + share - 1) / share}
	begin := time.Now()
	for _, at := range w.random.Perm(len(subjects))[:counts.chosen] {
		s := subjects[at]
		d := w.drift(t, s)
		s.report(t, &d)
		switch d.result {
		case "repaired":
			counts.drifted++
			counts.repaired++
			if d.what[0] == "delete" {
				counts.deleted++
			}
		case "diverged":
			counts.drifted++
		default:
			why := fmt.Sprintf("%s %s: %s", s.object.GetKind(), s.object.GetName(), s.holds)
			if counts.exceptions = append(counts.exceptions, why); s.holds == "" {
				t.Errorf("%s: %s, last by %v", why, d.result, d.what)
			}
		}
	}
	counts.took = time.Since(begin)
	return counts
}

// drift changes an object until the API server accepts a change that the agent must repair.
func (w *worker) drift(t *testing.T, s *subject) (d drift) {
	t.Helper()
	for n := range tries {
		if n == tries-1 {
			w = &worker{random: w.random, counts: w.counts, deletions: 1}
		}
		if d = w.try(t, s); d.result == "repaired" || d.result == "diverged" {
			break
		}
	}
	return d
}
