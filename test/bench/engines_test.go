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

// The operations that more than one engine has.
const (
	compare      = "compare"
	compareDrift = "compare-drift"
)

// measurement is one figure: an operation of an engine on a subject.
type measurement struct {
	operation, engine string
	// run runs the operation once and counts its results: differences, operations of a
	// patch, schemas or objects. The count must be want, or the figure is invalid.
	run  func() (int, error)
	want int
}

func measurements(t testing.TB, s subject) []measurement {
	t.Helper()
	var all []measurement
	for _, engine := range []func(testing.TB, subject) []measurement{krake, argoCD, deepEqual, structuredMergeDiff} {
		all = append(all, engine(t, s)...)
	}
	return all
}

func krake(t testing.TB, s subject) []measurement {
	t.Helper()
	observed, err := schema.Default(s.desired)
	kit.Must(t, err)
	resources, documents := []any{s.desired}, []any{observed.Document()}
	refined := apitypes.BuiltIn().Refine(observed, s.desired)
	comparing := func(by schema.Schema, live object) func() (int, error) {
		return func() (int, error) { return len(by.Compare(s.desired, live)), nil }
	}
	return []measurement{
		{compare, "krake", comparing(observed, s.live), 0},
		{compare, "krake-refined", comparing(refined, s.live), 0},
		{compareDrift, "krake", comparing(observed, s.drifted), 1},
		{compareDrift, "krake-refined", comparing(refined, s.drifted), 1},
		{"refine", "krake", func() (int, error) {
			return count(apitypes.BuiltIn().Refine(observed, s.desired).ID() == observed.ID()), nil
		}, 1},
		{"project", "krake", func() (int, error) {
			return count(observed.Project(s.desired, s.live) != nil), nil
		}, 1},
		{"patch", "krake", func() (int, error) { return len(observed.Patch(s.desired, s.drifted)), nil }, 1},
		{"parse", "krake", func() (int, error) {
			set, findings := schema.Mangle(resources, documents)
			return len(set) + len(findings), nil
		}, 1},
		{"default", "krake", func() (int, error) {
			_, err := schema.Default(s.desired)
			return 1, err
		}, 1},
	}
}

// argoCD calls diff.Diff with its defaults, without the options for server-side apply
// and without ignored fields.
func argoCD(_ testing.TB, s subject) []measurement {
	comparing := func(live object) func() (int, error) {
		return func() (int, error) {
			result, err := argoDiff(s.desired, live)
			return count(err == nil && result.Modified), err
		}
	}
	return []measurement{
		{compare, "argocd", comparing(s.live), 0},
		{compareDrift, "argocd", comparing(s.drifted), 1},
	}
}

func argoDiff(desired, live object) (*diff.DiffResult, error) {
	return diff.Diff(
		&unstructured.Unstructured{Object: desired}, &unstructured.Unstructured{Object: live},
		diff.WithNormalizer(diff.GetNoopNormalizer()), diff.WithLogr(logr.Discard()),
	)
}

func deepEqual(t testing.TB, s subject) []measurement {
	t.Helper()
	wanted := copied(t, s.live)
	comparing := func(live object) func() (int, error) {
		return func() (int, error) { return count(!equality.Semantic.DeepEqual(wanted, live)), nil }
	}
	return []measurement{
		{compare, "deepequal", comparing(s.live), 0},
		{compareDrift, "deepequal", comparing(s.drifted), 1},
	}
}

func structuredMergeDiff(t testing.TB, s subject) []measurement {
	t.Helper()
	wanted := typedOf(t, s.types, copied(t, s.live))
	all := []measurement{{"convert", "smd-typed", func() (int, error) {
		_, err := convert(s.types, s.live)
		return 1, err
	}, 1}}
	for want, operation := range []string{compare, compareDrift} {
		live := []object{s.live, s.drifted}[want]
		converted := typedOf(t, s.types, live)
		all = append(all,
			measurement{operation, "smd-typed", func() (int, error) { return differencesOf(converted, wanted) }, want},
			measurement{operation, "smd-typed+convert", func() (int, error) {
				converted, err := convert(s.types, live)
				if err != nil {
					return 0, err
				}
				return differencesOf(converted, wanted)
			}, want},
		)
	}
	return all
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

func differencesOf(live, wanted *typed.TypedValue) (int, error) {
	found, err := live.Compare(wanted)
	if err != nil || found.IsSame() {
		return 0, err
	}
	return found.Added.Size() + found.Modified.Size() + found.Removed.Size(), nil
}

// count is for engines that only report whether there is a difference.
func count(found bool) int {
	if found {
		return 1
	}
	return 0
}
