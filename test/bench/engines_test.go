package bench

import (
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// engine compares what a subject should be with a live object, and returns the number of
// differences. An engine that only says whether there is a difference returns 1.
type engine struct {
	name    string
	prepare func(t testing.TB, s subject, live object) func() (int, error)
}

func engines() []engine {
	return []engine{
		{"krake", func(t testing.TB, s subject, live object) func() (int, error) {
			return krake(observed(t, s), s, live)
		}},
		{"krake-refined", func(t testing.TB, s subject, live object) func() (int, error) {
			return krake(apitypes.BuiltIn().Refine(observed(t, s), s.desired), s, live)
		}},
		{"argocd", argoCD},
		{"deepequal", func(t testing.TB, s subject, live object) func() (int, error) {
			wanted := copied(t, s.live)
			return func() (int, error) { return count(!equality.Semantic.DeepEqual(wanted, live)), nil }
		}},
		{"smd-typed", func(t testing.TB, s subject, live object) func() (int, error) {
			wanted, converted := typedOf(t, s.types, copied(t, s.live)), typedOf(t, s.types, live)
			return func() (int, error) { return differences(converted, wanted) }
		}},
		{"smd-typed+convert", func(t testing.TB, s subject, live object) func() (int, error) {
			wanted := typedOf(t, s.types, copied(t, s.live))
			return func() (int, error) {
				converted, err := convert(s.types, live)
				if err != nil {
					return 0, err
				}
				return differences(converted, wanted)
			}
		}},
	}
}

func observed(t testing.TB, s subject) schema.Schema {
	t.Helper()
	observed, err := schema.Default(s.desired)
	kit.Must(t, err)
	return observed
}

func krake(by schema.Schema, s subject, live object) func() (int, error) {
	return func() (int, error) { return len(by.Compare(s.desired, live)), nil }
}

// argoCD calls diff.Diff with its defaults, without the options for server-side apply
// and without ignored fields.
func argoCD(_ testing.TB, s subject, live object) func() (int, error) {
	return func() (int, error) {
		result, err := diff.Diff(
			&unstructured.Unstructured{Object: s.desired}, &unstructured.Unstructured{Object: live},
			diff.WithNormalizer(diff.GetNoopNormalizer()), diff.WithLogr(logr.Discard()),
		)
		return count(err == nil && result.Modified), err
	}
}

func convert(types managedfields.TypeConverter, fields object) (*typed.TypedValue, error) {
	return types.ObjectToTyped(&unstructured.Unstructured{Object: fields})
}

func typedOf(t testing.TB, types managedfields.TypeConverter, fields object) *typed.TypedValue {
	t.Helper()
	value, err := convert(types, fields)
	kit.Must(t, err)
	return value
}

func differences(live, wanted *typed.TypedValue) (int, error) {
	found, err := live.Compare(wanted)
	if err != nil || found.IsSame() {
		return 0, err
	}
	return found.Added.Size() + found.Modified.Size() + found.Removed.Size(), nil
}

func count(found bool) int {
	if found {
		return 1
	}
	return 0
}

// comparison is one row of the result.
type comparison struct {
	name string
	run  func() (int, error)
	want int
}

func comparisons(t testing.TB) []comparison {
	t.Helper()
	var all []comparison
	for _, s := range subjects(t) {
		for _, e := range engines() {
			about := "/object=" + s.name + "/engine=" + e.name
			all = append(all,
				comparison{"op=compare" + about, e.prepare(t, s, s.live), 0},
				comparison{"op=compare-drift" + about, e.prepare(t, s, s.drifted), 1})
		}
	}
	return all
}

// Each engine finds the one drift, and nothing else: what it costs would say nothing otherwise.
func TestEnginesFindTheDrift(t *testing.T) {
	for _, c := range comparisons(t) {
		if got, err := c.run(); err != nil || got != c.want {
			t.Errorf("%s: %d differences, want %d; error: %v", c.name, got, c.want, err)
		}
	}
}

func BenchmarkEngines(b *testing.B) {
	for _, c := range comparisons(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, err := c.run(); err != nil || got != c.want {
					b.Fatalf("%d differences, want %d; error: %v", got, c.want, err)
				}
			}
		})
	}
}
