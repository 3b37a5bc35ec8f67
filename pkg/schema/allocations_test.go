package schema_test

import (
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// The agent compares every event of every observed object. A comparison without drift must
// cost nothing but time.
func TestCompareWithoutDriftAllocatesNothing(t *testing.T) {
	text, err := os.ReadFile("testdata/deployment.yaml")
	check.Must(t, err)
	documents, err := manifest.Decode(text)
	check.Must(t, err)
	desired, live := documents[0].(object), documents[1].(object)
	observed, err := schema.Default(desired)
	check.Must(t, err)
	projection := observed.Project(desired, live)
	moved, aligned := rearranged(live), observed.Align(keyed("name"))
	accepted := aligned.Accept(aligned.Forms(desired, moved)).ByValue()
	comparisons := map[string]func() schema.Differences{
		"Compare":            func() schema.Differences { return observed.Compare(desired, live) },
		"CompareProjection":  func() schema.Differences { return observed.CompareProjection(desired, projection) },
		"in another order":   func() schema.Differences { return accepted.Compare(desired, moved) },
		"in the usual order": func() schema.Differences { return accepted.Compare(desired, live) },
	}
	for name, compare := range comparisons {
		if drift := compare(); len(drift) > 0 {
			t.Fatalf("%s: the Deployment differs: %v", name, drift)
		}
		check.Equal(t, name+": allocations", 0, testing.AllocsPerRun(100, func() { compare() }))
	}
	drifted := runtime.DeepCopyJSON(live)
	drifted["spec"].(object)["replicas"] = int64(9)
	if got := observed.Compare(desired, drifted); len(got) != 1 {
		t.Errorf("%d differences, want spec.replicas: %v", len(got), got)
	}
}

// rearranged returns the Deployment with its ports in another order and one value in another
// form.
func rearranged(live object) object {
	moved := runtime.DeepCopyJSON(live)
	template := moved["spec"].(object)["template"].(object)
	container := template["spec"].(object)["containers"].([]any)[0].(object)
	slices.Reverse(container["ports"].([]any))
	container["resources"].(object)["requests"].(object)["cpu"] = "0.1"
	return moved
}
