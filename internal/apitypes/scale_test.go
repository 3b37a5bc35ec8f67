package apitypes

import "testing"

// KEDA's ScaledObject need not name the kind of its target.
func TestAnAutoscalerNamesItsTarget(t *testing.T) {
	for _, c := range []struct {
		why        string
		ref        any
		kind, name string
	}{
		{"a HorizontalPodAutoscaler", map[string]any{"kind": "StatefulSet", "name": "db"}, "StatefulSet", "db"},
		{"a ScaledObject", map[string]any{"name": "web"}, "Deployment", "web"},
		{"no object", "web", "Deployment", ""},
		{"none", nil, "Deployment", ""},
	} {
		kind, name := ScaleTarget(map[string]any{"spec": map[string]any{"scaleTargetRef": c.ref}})
		if kind != c.kind || name != c.name {
			t.Errorf("%s: got %s %q, want %s %q", c.why, kind, name, c.kind, c.name)
		}
	}
}
