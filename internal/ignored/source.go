package ignored

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	groups "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Source is an object of another tool that manages objects of a cluster, with its ignore rules.
type Source struct {
	// Kind is the kind with its tool, such as "Argo CD Application".
	Kind string
	Name string
	// Namespace is the namespace of the managed objects, empty if the source does not say it.
	Namespace string
	// Advice says what the tool goes on doing with its objects, and how to stop that.
	Advice string

	// marks are what the tool marks its objects by, the most precise first.
	marks        []mark
	rules        []rule
	untranslated []string
}

// String returns "Argo CD Application shop".
func (s Source) String() string { return s.Kind + " " + s.Name }

// Object is what a tool selects objects by.
type Object interface {
	GetNamespace() string
	GetName() string
	GetLabels() map[string]string
	GetAnnotations() map[string]string
	GroupVersionKind() groups.GroupVersionKind
}

// mark is a label or an annotation of the objects of a source.
type mark struct {
	text string
	isOn func(Object) bool
}

// rule ignores fields of objects.
type rule struct {
	// place is where the source has the rule.
	place       string
	selects     func(Object) bool
	pointers    []rulePointer
	expressions []expression
	managers    []ruleManager
	// isAbsence: the objects need not exist.
	isAbsence bool
	// isImplied: the source does not state the rule. isMark: it is about the marks of the tool.
	isImplied, isMark bool
}

type rulePointer struct {
	place string
	steps steps
}

type ruleManager struct{ place, name string }

// ManagedBy returns those of the objects that the tool has marked as objects of the source. The first
// mark that an object has counts: a label may be on objects of others, too.
func ManagedBy[O Object](s Source, objects []O) []O {
	for _, mark := range s.marks {
		marked := slices.DeleteFunc(slices.Clone(objects), func(o O) bool { return !mark.isOn(o) })
		if len(marked) > 0 {
			return marked
		}
	}
	return nil
}

// Marks returns what the objects of the source are found by.
func (s Source) Marks() string {
	texts := make([]string, 0, len(s.marks))
	for _, mark := range s.marks {
		texts = append(texts, mark.text)
	}
	return strings.Join(texts, ", or ")
}

// markedBy is a mark of some labels, or of some annotations. Pairs are names and values.
func markedBy(kind string, of func(Object) map[string]string, pairs ...string) mark {
	m := mark{text: "the " + kind, isOn: func(o Object) bool {
		have := of(o)
		for i := 0; i+1 < len(pairs); i += 2 {
			if value, ok := have[pairs[i]]; !ok || value != pairs[i+1] {
				return false
			}
		}
		return true
	}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			m.text += " and"
		}
		m.text += " " + pairs[i] + ": " + pairs[i+1]
	}
	return m
}

// ruleOfMarks is the rule for the marks themselves, which come and go with the tool.
func ruleOfMarks(field string, names ...string) rule {
	r := rule{isImplied: true, isMark: true, selects: func(Object) bool { return true }}
	for _, name := range names {
		r.pointers = append(r.pointers, rulePointer{steps: steps{"metadata", field, name}})
	}
	return r
}

// addPointers adds JSON pointers to a rule. The place is that of the field with the pointers.
func (s *Source) addPointers(r *rule, place string, pointers []string) {
	for i, text := range pointers {
		s.addPointer(r, fmt.Sprintf("%s[%d]", place, i), text)
	}
}

// addPointer adds a JSON pointer to a rule, or to what cannot be translated.
func (s *Source) addPointer(r *rule, place, text string) {
	pointer, err := pointerOf(text)
	if err != nil {
		s.leave("%s: %q: %w", place, text, err)
		return
	}
	r.pointers = append(r.pointers, rulePointer{place, pointer})
}

// leave records a part of the source that cannot be translated.
func (s *Source) leave(format string, arguments ...any) {
	s.untranslated = append(s.untranslated, fmt.Errorf(format, arguments...).Error())
}

// leaveUnknown records the fields of a part of the object that this package does not know: newer
// versions of the tool may ignore more by them.
func (s *Source) leaveUnknown(object any, place string, known ...string) {
	fields, _ := object.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			s.leave("%s.%s: this field is unknown", place, name)
		}
	}
}

// decode reads the fields of an object that are in a struct.
func decode(object *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, into)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: the type %s is not possible there: correct the file", mismatch.Field, mismatch.Value)
	}
	return err
}

// items returns the raw elements of a list in an object.
func items(object *unstructured.Unstructured, path ...string) []any {
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	list, _ := found.([]any)
	return list
}

// addExpression adds an expression to a rule, or to what cannot be translated. The expression sees
// neither the environment nor files.
func (s *Source) addExpression(r *rule, place, text string) {
	query, err := gojq.Parse("path(" + text + ")")
	if err != nil {
		s.leave("%s: %q: %w", place, text, err)
		return
	}
	code, err := gojq.Compile(query)
	if err != nil {
		s.leave("%s: %q: %w", place, text, err)
		return
	}
	r.expressions = append(r.expressions, expression{place, text, code})
}
