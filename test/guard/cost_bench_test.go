package guard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// inTurn is the number of requests one after the other, and atOnce that of clients at the same time, each with
	// eachAtOnce requests.
	inTurn     = 600
	atOnce     = 64
	eachAtOnce = 20
	// rounds are the times that the API server is asked without the guard, with it, and without it again.
	rounds = 3
)

// BenchmarkGuard measures what the guard costs a request to an object of an Application that it has nothing to say about.
// The API server is asked with the guard between two times without, so that its own changes of speed are visible.
func BenchmarkGuard(b *testing.B) {
	namespace := kit.UniqueName("cost")
	kit.Must(b, kit.ErrorOf(hub.CoreV1().Namespaces().Create(b.Context(), namespaceOf(namespace), metav1.CreateOptions{})))
	manifest := kit.WebManifest // for measure to see whether there is a guard
	for client := range atOnce {
		manifest += fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: web-%d}, data: {a: b}}\n", client)
	}
	hub.CreateApp(b, kit.Application(namespace, "web", manifest)).MustBe(b, application.StateRunning)
	for b.Loop() {
		var added, ratios, floors []float64
		for range rounds {
			before := measure(b, namespace, false)
			ours := measure(b, namespace, true)
			after := measure(b, namespace, false)
			floor := (before.median + after.median) / 2
			floors = append(floors, floor.Seconds()*1000)
			added = append(added, (ours.median-floor).Seconds()*1000)
			ratios = append(ratios, 2*ours.rate/(before.rate+after.rate))
			b.Logf("without %s, %.0f/s; with %s, %.0f/s; without %s, %.0f/s", before.median, before.rate, ours.median, ours.rate, after.median, after.rate)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(median(floors), "ms-without")
		b.ReportMetric(median(added), "ms-added")
		b.ReportMetric(median(ratios), "rate-ratio")
	}
}

// cost is the median time of a request, and the requests of 64 clients in a second.
type cost struct {
	median time.Duration
	rate   float64
}

// measure makes requests with or without the guard.
func measure(b *testing.B, namespace string, guarded bool) cost {
	b.Helper()
	if !guarded {
		hub.Kubectl(b, "delete", "validatingwebhookconfiguration", "krake-guard", "--ignore-not-found")
	} else {
		kit.Must(b, installed.Apply(b.Context()))
	}
	kit.Eventually(b, func() string {
		said, err := patch(b.Context(), anna, namespace, `{"spec": {"replicas": 7}}`, metav1.DryRunAll)
		if err != nil || len(said) > 0 != guarded {
			return fmt.Sprintf("guarded is %v, and it says %q, %v", guarded, said, err)
		}
		return ""
	})
	var took []time.Duration
	for range inTurn {
		took = append(took, touch(b.Context(), b, namespace, 0))
	}
	slices.Sort(took)
	opened, begin := installed.GuardConnections(), time.Now()
	var all sync.WaitGroup
	for client := range atOnce {
		all.Go(func() {
			for range eachAtOnce {
				touch(b.Context(), b, namespace, client)
			}
		})
	}
	all.Wait()
	rate := atOnce * eachAtOnce / time.Since(begin).Seconds()
	if guarded {
		b.Logf("%d requests at once opened %d connections", atOnce*eachAtOnce, installed.GuardConnections()-opened)
	}
	return cost{took[len(took)/2], rate}
}

var counter atomic.Int64

// touch changes a field that the schema does not have.
func touch(ctx context.Context, b *testing.B, namespace string, client int) time.Duration {
	b.Helper()
	text := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.org/counter": "%d"}}}`, counter.Add(1))
	name := fmt.Sprintf("web-%d", client) // each client has its own object: the API server puts writes of one object in a row
	begin := time.Now()
	_, err := patcher().Resource(kit.ConfigMaps).Namespace(namespace).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		b.Error(err)
	}
	return time.Since(begin)
}

var patcher = sync.OnceValue(mustClient)

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
