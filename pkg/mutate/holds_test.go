package mutate_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// The recorded user is the one who set mode or hold, whatever the request says.
func TestRecordHolder(t *testing.T) {
	const mode, until, by = application.ModeAnnotation, application.HoldUntilAnnotation, application.HeldByAnnotation
	type notes = map[string]string
	suspended := notes{mode: "suspend", by: "anna"}
	for _, c := range []struct {
		name         string
		stored, sent notes
		want         string
	}{
		{"nothing is held", nil, notes{}, ""},
		{"nothing is held, and the request says it is", nil, notes{by: "anna"}, ""},
		{"created suspended", nil, notes{mode: "suspend"}, "carl"},
		{"created suspended, in the name of another", nil, notes{mode: "suspend", by: "anna"}, "carl"},
		{"suspended", notes{}, notes{mode: "suspend"}, "carl"},
		{"observed", notes{}, notes{mode: "observe"}, "carl"},
		{"held", notes{}, notes{until: "2026-01-02T13:00:00Z"}, "carl"},
		{"held, with the mode in words", notes{}, notes{mode: "enforce", until: "2026-01-02T13:00:00Z"}, "carl"},
		{"edited by another while suspended", suspended, notes{mode: "suspend", by: "anna", "note": "x"}, "anna"},
		{"replaced by another while suspended", suspended, notes{mode: "suspend"}, "anna"},
		{"another name is sent while suspended", suspended, notes{mode: "suspend", by: "bert"}, "anna"},
		{"another name is sent for what is not recorded", notes{mode: "suspend"}, notes{mode: "suspend", by: "bert"}, ""},
		{"held beside the suspension", suspended, notes{mode: "suspend", until: "2026-01-02T13:00:00Z", by: "anna"}, "carl"},
		{"the hold beside the suspension ends", notes{mode: "suspend", until: "2026-01-02T13:00:00Z", by: "anna"}, notes{mode: "suspend"}, "anna"},
		{"the mode beside a hold is set in words", notes{until: "2026-01-02T13:00:00Z", by: "anna"}, notes{mode: "enforce", until: "2026-01-02T13:00:00Z"}, "anna"},
		{"the mode beside a hold ends", notes{mode: "suspend", until: "2026-01-02T13:00:00Z", by: "anna"}, notes{until: "2026-01-02T13:00:00Z"}, "anna"},
		{"observed instead", suspended, notes{mode: "observe", by: "anna"}, "carl"},
		{"resumed", suspended, notes{by: "anna"}, ""},
		{"resumed, in words", suspended, notes{mode: "enforce", by: "anna"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm := applicationWith(c.sent)
			stored := &corev1.ConfigMap{}
			if c.stored != nil {
				stored = applicationWith(c.stored)
			}
			sent := c.sent[by]
			isForged := sent != "" && sent != c.stored[by]
			for _, warns := range []bool{isForged, false} { // admission may be asked again
				check.Equal(t, "warns", warns, len(mutate.RecordHolder(cm, stored, "carl")) > 0)
				check.Equal(t, "held by", c.want, cm.Annotations[by])
			}
		})
	}
}

func applicationWith(annotations map[string]string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{application.FormatAnnotation: application.Format}}}
	maps.Copy(cm.Annotations, annotations)
	return cm
}
