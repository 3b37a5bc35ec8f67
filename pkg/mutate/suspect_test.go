package mutate_test

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

func places(refusals field.ErrorList) []any {
	paths := make([]any, 0, len(refusals))
	for _, refusal := range refusals {
		paths = append(paths, refusal.Field)
	}
	return paths
}

// A hold without effect, or for a long time, is accepted with a warning. Only the request that
// sets it gets the warning.
func TestSuspectHold(t *testing.T) {
	const (
		hour, mode, until = "2026-01-02T13:00:00Z", "krake.dev/mode", "krake.dev/hold-until"

		at     = "metadata.annotations[krake.dev/hold-until]: "
		past   = at + "this time is past, so nothing is held: set a later one, or leave it out"
		far    = at + "it is more than 7 days away, and no drift is reverted until then: to stop repairs permanently, set krake.dev/mode: observe"
		nobody = at + "mode suspend reverts nothing, so a hold has no effect: leave one of the two out"
	)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	type annotations = map[string]string
	tests := []struct {
		why         string
		stored, set annotations
		want        []string
	}{
		{"no hold", nil, annotations{mode: "suspend"}, nil},
		{"an hour", nil, annotations{until: hour}, nil},
		{"now, which is no time at all", nil, annotations{until: "2026-01-02T12:00:00Z"}, []string{past}},
		{"in the past", nil, annotations{until: "2026-01-02T11:59:59Z"}, []string{past}},
		{"just a week", nil, annotations{until: "2026-01-09T12:00:00Z"}, nil},
		{"more than a week", nil, annotations{until: "2026-01-09T12:00:01Z"}, []string{far}},
		{"of what is suspended", nil, annotations{until: hour, mode: "suspend"}, []string{nobody}},
		{"a value that is refused", nil, annotations{until: "4h"}, nil},
		{"one that is stored, long after", annotations{until: "2025-01-01T00:00:00Z"}, annotations{until: "2025-01-01T00:00:00Z"}, nil},
		{"one that is moved, and still past", annotations{until: "2025-01-01T00:00:00Z"}, annotations{until: "2026-01-01T00:00:00Z"}, []string{past}},
		{"suspended, while it is held", annotations{until: hour}, annotations{until: hour, mode: "suspend"}, []string{nobody}},
		{"taken away", annotations{until: hour}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm, was := submitted(), &corev1.ConfigMap{}
			if test.stored != nil {
				was = submitted()
				maps.Copy(was.Annotations, test.stored)
			}
			maps.Copy(cm.Annotations, test.set)
			check.Equal(t, "warnings", test.want, mutate.SuspectHold(cm, was, now))
		})
	}
	t.Run("what a plain ConfigMap had counts for nothing", func(t *testing.T) {
		cm, plain := submitted(), submitted()
		cm.Annotations[until] = "2025-01-01T00:00:00Z"
		plain.Annotations = map[string]string{until: "2025-01-01T00:00:00Z"}
		check.Equal(t, "warnings", []string{past}, mutate.SuspectHold(cm, plain, now))
	})
}
