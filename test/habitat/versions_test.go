package habitat

import (
	"fmt"
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

// An absent version is the same as v1beta1, and may be set later.
func TestVersionMayBeSaid(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	unversioned := old("bare", 1)
	delete(unversioned, "customVersion")
	h.create(t, habitats, unversioned)
	h.mustRun(t, "bare")
	uid := h.get(t, kit.Deployments, "bare").GetUID()
	h.patch(t, habitats, "bare", "user", `{"customVersion": "v1beta1"}`)
	h.patch(t, habitats, "bare", "user", `{"customVersion": ""}`)
	h.mustRefuse(t, "bare", `{"customVersion": "v1beta2"}`, "customVersion")
	h.mustRun(t, "bare")
	h.mustStay(t, kit.Deployments, "bare", uid)
}

// mustRefuse fails unless the API server refuses an edit of a Habitat, with this word.
func (h home) mustRefuse(t *testing.T, name, patch, word string) {
	t.Helper()
	said, err := h.tryKubectl(nil, "", "patch", "hab", name, "--type=merge", "--patch", patch)
	if err == nil || !strings.Contains(said, word) {
		t.Errorf("%s of %s: %v, want a refusal that names %s: %s", patch, name, err, word, said)
	}
}

// A change that a StatefulSet does not support is refused at once.
func TestStorageCannotChange(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	h.run(t,
		service("kept", 1, object{"persistentStorage": object{"size": "1Gi", "storageClassName": "", "mountPath": "/data"}}),
		service("none", 1, nil),
	)
	for _, c := range []struct{ name, storage string }{
		{"kept", `{"size": "2Gi"}`}, {"kept", `{"storageClassName": "fast"}`}, {"kept", `{"mountPath": "/elsewhere"}`}, {"kept", `null`},
		{"none", `{"size": "1Gi", "storageClassName": "", "mountPath": "/data"}`},
	} {
		h.mustRefuse(t, c.name, fmt.Sprintf(`{"spec": {"v1beta2": {"persistentStorage": %s}}}`, c.storage), "persistentStorage")
	}
	h.edit(t, "kept", `{"image": "registry.test/hab/kept:2"}`) // and all other work continues
	h.mustRoll(t, "kept", "registry.test/hab/kept:2")
}

// With a foreign definition of Habitats without validation, the controller reports the
// mistakes, with the path as the user wrote it. The administrator of the API server
// replaces the definition, as before its update.
func TestValidationFailed(t *testing.T) {
	kit.Long(t, "each kind of invalid Habitat")
	t.Parallel()
	p := loosePlane(t)
	h := p.home(t, "loose")
	for name, c := range map[string]struct {
		spec  object
		words []string
	}{
		"topology": {object{"image": "a", "service": object{"name": "a", "topology": "ring"}}, []string{"spec.v1beta2.service.topology", "standalone", "leader"}},
		"ring":     {object{"image": "a", "service": with("a", "leader", object{"ringSecretName": "abc-123"})}, []string{"spec.v1beta2.service.ringSecretName"}},
		"count":    {object{"image": "a", "count": int64(-1), "service": with("a", "leader", nil)}, []string{"spec.v1beta2.count"}},
		"two":      {object{"image": "a", "count": "two", "service": with("a", "leader", nil)}, []string{"spec.v1beta2.count"}},
		"size":     {object{"image": "a", "persistentStorage": object{"size": "10 gigs", "mountPath": "/a"}, "service": with("a", "leader", nil)}, []string{"spec.v1beta2.persistentStorage.size"}},
		"more":     {object{"image": "a", "colour": "red", "service": with("a", "leader", nil)}, []string{"spec.v1beta2.colour"}},
	} {
		content := service(name, 1, nil)
		content["spec"] = object{"v1beta2": c.spec}
		h.create(t, habitats, content)
		if message := h.mustSay(t, name, "Accepted", metav1.ConditionFalse, "ValidationFailed"); !hasAll(message, c.words) {
			t.Errorf("%s: the condition says %q, want %q", name, message, c.words)
		}
		h.mustTell(t, name, "Warning", "ValidationFailed", c.words...)
		h.eventuallyField(t, "FAILED", habitats, name, "status", "state")
	}
	h.run(t, service("good", 1, nil))
	h.awaitCalm(t)
	if h.get(t, kit.ConfigMaps, "habitat-topology") != nil {
		t.Error("of a Habitat that is wrong an Application was made")
	}
	// An invalid edit leaves the former objects; a corrected one is carried out at once.
	uid := h.get(t, kit.StatefulSets, "good").GetUID()
	h.edit(t, "good", `{"service": {"topology": "Leader"}}`)
	h.mustSay(t, "good", "Accepted", metav1.ConditionFalse, "ValidationFailed")
	h.mustStay(t, kit.StatefulSets, "good", uid)
	// The controller also refuses changes that a StatefulSet does not support.
	h.edit(t, "good", `{"service": {"topology": "standalone"}, "persistentStorage": {"size": "1Gi", "mountPath": "/data"}}`)
	h.mustSay(t, "good", "Accepted", metav1.ConditionFalse, "ImmutableField")
	h.mustTell(t, "good", "Warning", "ImmutableField", "persistentStorage")
	h.edit(t, "good", `{"persistentStorage": null, "image": "registry.test/hab/good:2"}`)
	h.mustRoll(t, "good", "registry.test/hab/good:2")
	h.mustRun(t, "good")
	h.mustStay(t, kit.StatefulSets, "good", uid)
}
