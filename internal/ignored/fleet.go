package ignored

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	groups "k8s.io/apimachinery/pkg/runtime/schema"
)

// The marks of Helm, by which Fleet installs, and of Fleet.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	fleetSet      = "objectset.rio.cattle.io/"
)

// fleetBundle are the fields of a Bundle that matter here.
type fleetBundle struct {
	Spec fleetOptions `json:"spec"`
}

type fleetOptions struct {
	DefaultNamespace string `json:"defaultNamespace"`
	Namespace        string `json:"namespace"`
	Helm             struct {
		ReleaseName string `json:"releaseName"`
	} `json:"helm"`
	Diff struct {
		ComparePatches []fleetPatch `json:"comparePatches"`
	} `json:"diff"`
	CorrectDrift struct {
		Enabled bool `json:"enabled"`
	} `json:"correctDrift"`
}

type fleetPatch struct {
	APIVersion   string           `json:"apiVersion"`
	Kind         string           `json:"kind"`
	Namespace    string           `json:"namespace"`
	Name         string           `json:"name"`
	JSONPointers []string         `json:"jsonPointers"`
	Operations   []fleetOperation `json:"operations"`
}

type fleetOperation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

func readFleet(object *unstructured.Unstructured) (Source, error) {
	var bundle fleetBundle
	if err := decode(object, &bundle); err != nil {
		return Source{}, err
	}
	spec := bundle.Spec
	s := Source{Kind: "Fleet Bundle", Name: object.GetName(), Namespace: cmp.Or(spec.Namespace, spec.DefaultNamespace)}
	s.Advice = "Fleet goes on deploying these objects."
	if spec.CorrectDrift.Enabled {
		s.Advice += fmt.Sprintf(" Set spec.correctDrift.enabled of the %s to false, so that two programs do not correct the same fields.", s)
	}
	pairs := []string{helmRelease, cmp.Or(spec.Helm.ReleaseName, s.Name)}
	if s.Namespace != "" {
		pairs = append(pairs, helmNamespace, s.Namespace)
	}
	s.marks = []mark{markedBy("annotation", Object.GetAnnotations, pairs...)}
	for i, patch := range spec.Diff.ComparePatches {
		place := fmt.Sprintf("spec.diff.comparePatches[%d]", i)
		s.leaveUnknown(items(object, "spec", "diff", "comparePatches")[i], place,
			"apiVersion", "kind", "namespace", "name", "jsonPointers", "operations")
		s.addPatch(place, patch)
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "ignore"); has {
		s.leave("spec.ignore: it is about conditions, and no observer schema has the status")
	}
	for i, target := range items(object, "spec", "targets") {
		options, _ := target.(map[string]any)
		for _, field := range []string{"defaultNamespace", "namespace", "helm", "diff", "correctDrift"} {
			if options[field] != nil {
				s.leave("spec.targets[%d].%s: it is for some clusters only", i, field)
			}
		}
	}
	s.rules = append(s.rules, ruleOfMarks("annotations", helmRelease, helmNamespace, fleetSet+"id"), ruleOfMarks("labels", fleetSet+"hash"))
	return s, nil
}

// addPatch adds the rules of a patch: one for its paths, and one if the objects need not exist.
func (s *Source) addPatch(place string, patch fleetPatch) {
	version, err := groups.ParseGroupVersion(patch.APIVersion)
	if err != nil {
		s.leave("%s.apiVersion: %w", place, err)
		return
	}
	selects, err := globsOf(version.Group, patch.Kind, patch.Name, patch.Namespace)
	if err != nil {
		s.leave("%s: %w", place, err)
		return
	}
	r := rule{place: place, selects: selects}
	s.addPointers(&r, place+".jsonPointers", patch.JSONPointers)
	for i, operation := range patch.Operations {
		where := fmt.Sprintf("%s.operations[%d]", place, i)
		switch {
		case operation.Op == "ignore":
			s.rules = append(s.rules, rule{place: where, selects: selects, isAbsence: true})
		case operation.Op == "remove", operation.Op == "replace", operation.Op == "add" && !isElement(operation.Path):
			// Fleet changes both sides of its comparison, so the values are equal afterwards.
			s.addPointer(&r, where, operation.Path)
		default:
			s.leave("%s: %q: %q: an observer schema names fields, and this operation ignores none", where, operation.Op, operation.Path)
		}
	}
	if len(r.pointers) > 0 {
		s.rules = append(s.rules, r)
	}
}

// isElement reports whether a JSON pointer may lead to an element of a list.
func isElement(pointer string) bool {
	token := pointer[strings.LastIndex(pointer, "/")+1:]
	_, err := strconv.Atoi(token)
	return token == "-" || err == nil
}
