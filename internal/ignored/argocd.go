package ignored

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The marks of Argo CD. Which one it sets is up to its tracking method.
const (
	argoTracking = "argocd.argoproj.io/tracking-id"
	argoInstance = "app.kubernetes.io/instance"
)

// argoApplication are the fields of an Application that matter here.
type argoApplication struct {
	Spec struct {
		Destination struct {
			Namespace string `json:"namespace"`
		} `json:"destination"`
		IgnoreDifferences []struct {
			Group                 string   `json:"group"`
			Kind                  string   `json:"kind"`
			Name                  string   `json:"name"`
			Namespace             string   `json:"namespace"`
			JSONPointers          []string `json:"jsonPointers"`
			JQPathExpressions     []string `json:"jqPathExpressions"`
			ManagedFieldsManagers []string `json:"managedFieldsManagers"`
		} `json:"ignoreDifferences"`
		SyncPolicy struct {
			Automated struct {
				SelfHeal bool `json:"selfHeal"`
			} `json:"automated"`
		} `json:"syncPolicy"`
	} `json:"spec"`
}

func readArgoCD(object *unstructured.Unstructured) (Source, error) {
	var app argoApplication
	if err := decode(object, &app); err != nil {
		return Source{}, err
	}
	s := Source{Kind: "Argo CD Application", Name: object.GetName(), Namespace: app.Spec.Destination.Namespace}
	s.Advice = "Argo CD goes on syncing these objects."
	if app.Spec.SyncPolicy.Automated.SelfHeal {
		s.Advice += fmt.Sprintf(" Set spec.syncPolicy.automated.selfHeal of the %s to false, so that two programs do not correct the same fields.", s)
	}
	names := []string{s.Name}
	if namespace := object.GetNamespace(); namespace != "" {
		// The name of an Application outside the namespace of Argo CD, which the file does not say.
		names = append([]string{namespace + "_" + s.Name}, names...)
	}
	for _, name := range names {
		s.marks = append(s.marks, mark{
			text: fmt.Sprintf("the annotation %s: %s:GROUP/KIND:NAMESPACE/NAME", argoTracking, name),
			isOn: func(o Object) bool { return o.GetAnnotations()[argoTracking] == trackingID(name, o) },
		})
	}
	for _, name := range names {
		s.marks = append(s.marks, markedBy("label", Object.GetLabels, argoInstance, name))
	}
	for i, ignore := range app.Spec.IgnoreDifferences {
		place := fmt.Sprintf("spec.ignoreDifferences[%d]", i)
		s.leaveUnknown(items(object, "spec", "ignoreDifferences")[i], place,
			"group", "kind", "name", "namespace", "jsonPointers", "jqPathExpressions", "managedFieldsManagers")
		selects, err := globsOf(ignore.Group, ignore.Kind, ignore.Name, ignore.Namespace)
		if err != nil {
			s.leave("%s: %w", place, err)
			continue
		}
		r := rule{place: place, selects: selects}
		s.addPointers(&r, place+".jsonPointers", ignore.JSONPointers)
		for j, text := range ignore.JQPathExpressions {
			s.addExpression(&r, fmt.Sprintf("%s.jqPathExpressions[%d]", place, j), text)
		}
		for j, manager := range ignore.ManagedFieldsManagers {
			r.managers = append(r.managers, ruleManager{fmt.Sprintf("%s.managedFieldsManagers[%d]", place, j), manager})
		}
		s.rules = append(s.rules, r)
	}
	s.rules = append(s.rules, ruleOfMarks("annotations", argoTracking))
	return s, nil
}

// trackingID is the annotation of an object. One with another value was copied from another object.
func trackingID(name string, o Object) string {
	kind := o.GroupVersionKind()
	return fmt.Sprintf("%s:%s/%s:%s/%s", name, kind.Group, kind.Kind, o.GetNamespace(), o.GetName())
}

// globsOf selects objects by patterns for group and kind, and by name and namespace, which may be
// empty.
func globsOf(group, kind, name, namespace string) (func(Object) bool, error) {
	for _, glob := range []string{group, kind} {
		if _, err := path.Match(glob, ""); err != nil || strings.ContainsAny(glob, `{}\`) {
			return nil, fmt.Errorf("%q: this pattern for group and kind is not supported", glob)
		}
	}
	return func(o Object) bool {
		of := o.GroupVersionKind()
		// The patterns are valid: see above.
		inGroup, _ := path.Match(group, of.Group)
		isKind, _ := path.Match(kind, of.Kind)
		return inGroup && isKind && (name == "" || name == o.GetName()) && (namespace == "" || namespace == o.GetNamespace())
	}, nil
}
