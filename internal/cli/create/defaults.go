package create

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// trial returns an object in the form in which it would be created.
type trial func(object map[string]any) (map[string]any, error)

// trialIn asks an API server, which creates nothing.
func trialIn(ctx context.Context, o env.Objects, mapping *meta.RESTMapping, namespace string) trial {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	client := o.Resource(mapping.Resource).Namespace(namespace)
	return func(object map[string]any) (map[string]any, error) {
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: env.FieldManager}
		created, err := client.Create(ctx, &unstructured.Unstructured{Object: object}, options)
		if err != nil {
			return nil, err
		}
		return created.Object, nil
	}
}

// mostTrials is how often an API server is asked about one object.
const mostTrials = 500

// defaultsOf returns the fields that the API server would fill in with their present values.
// In managedFields, the creator of an object has set them, too. It does not send fields that
// others have set. It uses another name, because that of the object is taken.
func defaultsOf(live map[string]any, leftOut []leftOut, try trial) ([]schema.Path, error) {
	object := runtime.DeepCopyJSON(live)
	delete(object, "status")
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	object["metadata"] = map[string]any{"generateName": name + "-", "labels": metadata["labels"], "annotations": map[string]any{}}
	for _, left := range leftOut {
		take(object, left.path)
	}
	if _, err := try(object); err != nil {
		return nil, err
	}
	t := trials{try: try, object: object, left: mostTrials}
	for _, field := range slices.Sorted(maps.Keys(object)) {
		switch field {
		case "apiVersion", "kind", "metadata":
			continue
		}
		t.at(schema.FieldPath(field))
	}
	if t.left <= 0 {
		return t.found, errors.New("the object has too many fields")
	}
	return t.found, nil
}

type trials struct {
	try    trial
	object map[string]any
	found  []schema.Path
	left   int
}

// at tries to remove the value at a path, or a part of it.
func (t *trials) at(path schema.Path) {
	value := schema.ValueAt(t.object, path)
	if path[len(path)-1].Index < 0 && t.remove(path, value) {
		t.found = append(t.found, path)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			t.at(lens.Below(path, name, -1))
		}
	case []any:
		for i, element := range value {
			if lens.IsComposite(element) {
				t.at(lens.Below(path, "", i))
			}
		}
	}
}

// remove removes a field if the API server would fill it in with this value.
func (t *trials) remove(path schema.Path, value any) bool {
	if t.left--; t.left < 0 {
		return false
	}
	take(t.object, path)
	created, err := t.try(t.object)
	if err == nil && reflect.DeepEqual(schema.ValueAt(created, path), value) {
		return true
	}
	parent, _ := schema.ValueAt(t.object, path[:len(path)-1]).(map[string]any)
	parent[path[len(path)-1].Field] = value
	return false
}

// take removes a field of an object. An element of a list stays: the others would be found
// at other places.
func take(object map[string]any, path schema.Path) {
	last := path[len(path)-1]
	if parent, ok := schema.ValueAt(object, path[:len(path)-1]).(map[string]any); ok && last.Index < 0 {
		delete(parent, last.Field)
	}
}

// withoutDefaults returns a proposal for an object without a record of the fields that its
// author wrote. It asks the API server which values are defaults.
func withoutDefaults(p proposal, live map[string]any, try trial, types *apitypes.Types) (proposal, error) {
	if !p.unsaid {
		return p, nil
	}
	defaults, failure := defaultsOf(live, p.left, try)
	better, err := propose(nil, live, defaults, types)
	if failure != nil {
		better.note = "which of these fields are but defaults of the API server is not known, as its dry run failed: " + ofTrial(failure)
	}
	return better, err
}

// ofTrial returns the text of an error without the values that a refusal repeats.
func ofTrial(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown && !apierrors.IsForbidden(err) {
		return string(reason)
	}
	return draft.WithoutText(err).Error()
}
