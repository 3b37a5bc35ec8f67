package ignored

import (
	"cmp"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// The labels of the objects of a HelmRelease, and the label or annotation by which an object opts out.
const (
	fluxName      = "helm.toolkit.fluxcd.io/name"
	fluxNamespace = "helm.toolkit.fluxcd.io/namespace"
	fluxOptOut    = "helm.toolkit.fluxcd.io/driftDetection"
)

// fluxRelease are the fields of a HelmRelease that matter here.
type fluxRelease struct {
	Spec struct {
		TargetNamespace string `json:"targetNamespace"`
		DriftDetection  struct {
			Mode   string `json:"mode"`
			Ignore []struct {
				Paths  []string    `json:"paths"`
				Target *fluxTarget `json:"target"`
			} `json:"ignore"`
		} `json:"driftDetection"`
	} `json:"spec"`
}

// fluxTarget selects objects. The first five fields are regular expressions.
type fluxTarget struct {
	Group              string `json:"group"`
	Version            string `json:"version"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	Namespace          string `json:"namespace"`
	LabelSelector      string `json:"labelSelector"`
	AnnotationSelector string `json:"annotationSelector"`
}

func readFlux(object *unstructured.Unstructured) (Source, error) {
	var release fluxRelease
	if err := decode(object, &release); err != nil {
		return Source{}, err
	}
	detection := release.Spec.DriftDetection
	s := Source{Kind: "Flux HelmRelease", Name: object.GetName(), Namespace: cmp.Or(release.Spec.TargetNamespace, object.GetNamespace())}
	s.Advice = "Flux goes on upgrading these objects."
	if detection.Mode == "enabled" {
		s.Advice += fmt.Sprintf(" Set spec.driftDetection.mode of the %s to warn or disabled, so that two programs do not correct the same fields.", s)
	}
	pairs := []string{fluxName, s.Name}
	if namespace := object.GetNamespace(); namespace != "" {
		pairs = append(pairs, fluxNamespace, namespace)
	}
	s.marks = []mark{markedBy("label", Object.GetLabels, pairs...)}
	for i, ignore := range detection.Ignore {
		place := fmt.Sprintf("spec.driftDetection.ignore[%d]", i)
		raw, _ := items(object, "spec", "driftDetection", "ignore")[i].(map[string]any)
		s.leaveUnknown(raw, place, "paths", "target")
		s.leaveUnknown(raw["target"], place+".target", "group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")
		selects, err := ignore.Target.selects()
		if err != nil {
			s.leave("%s.target: %w", place, err)
			continue
		}
		r := rule{place: place, selects: selects}
		s.addPointers(&r, place+".paths", ignore.Paths)
		s.rules = append(s.rules, r)
	}
	s.rules = append(s.rules, rule{
		isImplied: true,
		selects: func(o Object) bool {
			return o.GetAnnotations()[fluxOptOut] == "disabled" || o.GetLabels()[fluxOptOut] == "disabled"
		},
		pointers: []rulePointer{{place: fluxOptOut + " of the object"}},
	}, ruleOfMarks("labels", fluxName, fluxNamespace))
	return s, nil
}

// selects returns what the target selects. Without a target, a rule is for all objects.
func (t *fluxTarget) selects() (func(Object) bool, error) {
	if t == nil {
		t = &fluxTarget{}
	}
	patterns := make([]*regexp.Regexp, 0, 5)
	for _, text := range []string{t.Group, t.Version, t.Kind, t.Name, t.Namespace} {
		if text == "" {
			text = ".*"
		}
		pattern, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			return nil, fmt.Errorf("%q is not a regular expression", text)
		}
		patterns = append(patterns, pattern)
	}
	byLabels, err := labels.Parse(t.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	byAnnotations, err := labels.Parse(t.AnnotationSelector)
	if err != nil {
		return nil, fmt.Errorf("annotationSelector: %w", err)
	}
	return func(o Object) bool {
		kind := o.GroupVersionKind()
		for i, value := range []string{kind.Group, kind.Version, kind.Kind, o.GetName(), o.GetNamespace()} {
			if !patterns[i].MatchString(value) {
				return false
			}
		}
		return byLabels.Matches(labels.Set(o.GetLabels())) && byAnnotations.Matches(labels.Set(o.GetAnnotations()))
	}, nil
}
