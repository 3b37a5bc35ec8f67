package reconcile_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestCalculate(t *testing.T) {
	id := func(kind, name string) manifest.ID {
		return manifest.ID{APIVersion: "v1", Kind: kind, Namespace: "demo", Name: name}
	}
	var (
		account    = id("ServiceAccount", "a")
		config     = id("ConfigMap", "a")
		service    = id("Service", "a")
		deployment = id("Deployment", "a")
		custom     = id("Song", "a")

		absent  = observer.Observation{}
		asSaid  = observer.Observation{UID: "1"}
		differs = observer.Observation{UID: "1", Live: observer.Whole("{}")}
		stale   = observer.Observation{UID: "1", Stale: true}
	)
	cases := []struct {
		name      string
		planned   []manifest.ID
		observed  []observer.Observation
		inventory []manifest.ID
		want      reconcile.Delta
	}{
		{"nothing planned, nothing held", nil, nil, nil, reconcile.Delta{}},
		{"all is as planned", []manifest.ID{config}, []observer.Observation{asSaid}, []manifest.ID{config}, reconcile.Delta{}},
		{"what is not there is new", []manifest.ID{config}, []observer.Observation{absent}, nil, reconcile.Delta{New: []int{0}}},
		{"what is held, but gone, is new again", []manifest.ID{config}, []observer.Observation{absent}, []manifest.ID{config}, reconcile.Delta{New: []int{0}}},
		{"what differs is modified", []manifest.ID{config}, []observer.Observation{differs}, []manifest.ID{config}, reconcile.Delta{Modified: []int{0}}},
		{"what was not looked at is read", []manifest.ID{config}, []observer.Observation{stale}, []manifest.ID{config}, reconcile.Delta{Modified: []int{0}}},
		{"what is held, but not planned, is deleted", nil, nil, []manifest.ID{config}, reconcile.Delta{Deleted: []manifest.ID{config}}},
		{"the same name of another kind is another object",
			[]manifest.ID{config}, []observer.Observation{asSaid}, []manifest.ID{config, service}, reconcile.Delta{Deleted: []manifest.ID{service}}},
		{"what others refer to is created first, unknown kinds last, whatever the manifest's order",
			[]manifest.ID{custom, deployment, service, config, account}, []observer.Observation{absent, absent, absent, absent, absent}, nil,
			reconcile.Delta{New: []int{4, 3, 2, 1, 0}}},
		{"equals keep the manifest's order",
			[]manifest.ID{id("ConfigMap", "b"), id("ConfigMap", "a")}, []observer.Observation{absent, absent}, nil, reconcile.Delta{New: []int{0, 1}}},
		{"changes go in the same order",
			[]manifest.ID{deployment, config}, []observer.Observation{differs, stale}, nil, reconcile.Delta{Modified: []int{1, 0}}},
		{"deletion goes the other way",
			nil, nil, []manifest.ID{custom, account, deployment, config, service},
			reconcile.Delta{Deleted: []manifest.ID{custom, deployment, service, config, account}}},
		{"each by itself",
			[]manifest.ID{config, service, deployment}, []observer.Observation{absent, differs, asSaid}, []manifest.ID{deployment, account},
			reconcile.Delta{New: []int{0}, Modified: []int{1}, Deleted: []manifest.ID{account}}},
		{"another version of the API serves the same object, which is to stay",
			[]manifest.ID{{APIVersion: "example.com/v2", Kind: "Song", Namespace: "demo", Name: "a"}}, []observer.Observation{asSaid},
			[]manifest.ID{{APIVersion: "example.com/v1", Kind: "Song", Namespace: "demo", Name: "a"}}, reconcile.Delta{}},
		{"another group does not",
			[]manifest.ID{{APIVersion: "new.example.com/v1", Kind: "Song", Namespace: "demo", Name: "a"}}, []observer.Observation{absent},
			[]manifest.ID{{APIVersion: "example.com/v1", Kind: "Song", Namespace: "demo", Name: "a"}},
			reconcile.Delta{New: []int{0}, Deleted: []manifest.ID{{APIVersion: "example.com/v1", Kind: "Song", Namespace: "demo", Name: "a"}}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := reconcile.Calculate(c.planned, c.observed, c.inventory)
			check.Equal(t, "delta", c.want, got)
		})
	}
}
