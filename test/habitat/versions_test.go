package habitat

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

const deprecation = "customVersion v1beta1 is deprecated, and will be removed: use customVersion: v1beta2 with spec.v1beta2"

// "Both custom versions are supported, side by side": a StatefulSet and a Deployment in
// one ring, whose file both own.
func TestVersionsShareTheRing(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	h.run(t, service("new", 1, nil), old("old", 2))
	h.mustBeCarriedOut(t, "new")
	h.mustBeCarriedOut(t, "old")
	h.mustOwn(t, "new", "old")
	h.mustHavePeer(t, 3)
	for _, workload := range []string{"new", "old"} {
		resource := kit.StatefulSets
		if workload == "old" {
			resource = kit.Deployments
		}
		live := h.get(t, resource, workload)
		if got := kit.Field(live, "spec", "template", "spec", "volumes", 0, "configMap", "name"); got != habitat.PeerFile {
			t.Errorf("%s reads its peer from %v", workload, got)
		}
	}
	// Either may be the peer of the other, and outlives it.
	h.delete(t, habitats, "new")
	h.mustGo(t, kit.StatefulSets, "new")
	h.mustOwn(t, "old")
	h.mustHavePeer(t, 2)
	h.delete(t, habitats, "old")
	h.mustGo(t, kit.Deployments, "old")
	h.mustGo(t, kit.ConfigMaps, habitat.PeerFile)
}

// kubectl warns at once about the deprecated version, and an Event reports it. The
// current version has neither.
func TestDeprecation(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	unversioned := old("bare", 0)
	delete(unversioned, "customVersion")
	for _, c := range []struct {
		content object
		warned  bool
	}{{old("flat", 0), true}, {unversioned, true}, {service("new", 0, nil), false}} {
		name := nameOf(c.content)
		said, err := h.tryKubectl(nil, kit.YAML(t, c.content), "apply", "-f", "-")
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if warned := strings.Contains(said, "Warning: ") && strings.Contains(said, deprecation); warned != c.warned {
			t.Errorf("of %s kubectl says %q", name, said)
		}
		h.mustRun(t, name)
		if c.warned {
			h.mustTell(t, name, "Warning", "Deprecated", deprecation)
		} else if notes := h.events(t, habitat.Kind, name, "Deprecated"); len(notes) > 0 {
			t.Errorf("%s is said to be deprecated: %q", name, notes)
		}
	}
}

// An unknown version is reported, and no object is made of it.
func TestUnknownVersion(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	h.create(t, habitats, service("known", 1, nil))
	unknown := service("future", 1, nil)
	unknown["customVersion"] = "v1beta3"
	unknown["spec"] = object{"v1beta3": object{"anything": "else"}}
	if _, err := h.tryCreate(t.Context(), habitats, unknown); err != nil {
		unknown["spec"] = object{} // the CRD may refuse unknown fields
		h.create(t, habitats, unknown)
	}
	message := h.mustSay(t, "future", "Accepted", metav1.ConditionFalse, "UnknownVersion")
	if !hasAll(message, []string{"v1beta3", "v1beta2"}) {
		t.Errorf("the condition says %q, want the version, and those that there are", message)
	}
	h.mustTell(t, "future", "Warning", "UnknownVersion", "v1beta3")
	h.eventuallyField(t, message, habitats, "future", "status", "message")
	h.mustRun(t, "known")
	h.awaitCalm(t)
	h.mustOwn(t, "known")
	for _, resource := range witnessed() {
		for _, name := range []string{"future", "habitat-future"} {
			if live := h.get(t, resource, name); live != nil && resource != habitats {
				t.Errorf("of a Habitat of an unknown version was made %s %s", live.GetKind(), name)
			}
		}
	}
	// A Habitat cannot change from an unknown version to a known one, or back.
	h.mustRefuse(t, "future", `{"customVersion": "v1beta2"}`, "customVersion")
	h.mustRefuse(t, "known", `{"customVersion": "v1beta1"}`, "customVersion")
	h.mustRefuse(t, "known", `{"customVersion": null}`, "customVersion")
}

// mustRefuse fails unless the API server refuses an edit of a Habitat, with this word.
func (h home) mustRefuse(t *testing.T, name, patch, word string) {
	t.Helper()
	said, err := h.tryKubectl(nil, "", "patch", "hab", name, "--type=merge", "--patch", patch)
	if err == nil || !strings.Contains(said, word) {
		t.Errorf("%s of %s: %v, want a refusal that names %s: %s", patch, name, err, word, said)
	}
}
