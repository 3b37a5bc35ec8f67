package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// callLimit and budget are the API server's limits for one rule, and for all rules of
	// an object.
	callLimit = 1_000_000
	budget    = 10_000_000
)

// rules evaluates the rules of a definition as the server does, without a server.
type rules struct {
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
	cel       *cel.Validator
}

func compile(of *apiextensionsv1.JSONSchemaProps) (rules, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(of, internal, nil); err != nil {
		return rules{}, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return rules{}, err
	}
	if mistakes := structuralschema.ValidateStructural(nil, structural); len(mistakes) > 0 {
		return rules{}, mistakes.ToAggregate()
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	return rules{structural, validator, cel.NewValidator(structural, true, callLimit)}, err
}

// say returns the messages of the rules about an object, sorted.
func (r rules) say(t *testing.T, of row) string {
	t.Helper()
	mistakes := validation.ValidateCustomResource(nil, of.object, r.validator)
	mistakes = append(mistakes, listtype.ValidateListSetsAndMaps(nil, r.schema, of.object)...)
	var before any
	if of.stored != nil {
		before = of.stored
	}
	if !slices.ContainsFunc(mistakes, isBlocking) {
		more, left := r.cel.Validate(t.Context(), nil, r.schema, of.object, before, budget)
		if left < 0 {
			t.Error("the rules cost more than they may")
		}
		mistakes = append(mistakes, more...)
	}
	var all []string
	for _, mistake := range mistakes {
		all = append(all, mistake.Error())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// isBlocking reports whether a mistake keeps rules from being evaluated, because they
// might cost too much, or miss a field.
func isBlocking(mistake *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
	}, mistake.Type)
}

// shippedSchema returns the schema of the shipped definition.
func shippedSchema(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text, err := manifests.Files.ReadFile("components/habitat/crd/habitats.yaml")
	kit.Must(t, err)
	var definition apiextensionsv1.CustomResourceDefinition
	kit.Must(t, yaml.UnmarshalStrict(text, &definition))
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// row is a Habitat of the tables, with its state before the change.
type row struct {
	what           string
	object, stored map[string]any
}

// rows returns all rows of the tables.
func rows() []row {
	var all []row
	for _, c := range allCells() {
		all = append(all, row{"creation: " + c.what, habitatOf(c.habitat(), c.change).Object, nil})
	}
	for _, c := range changes {
		all = append(all, row{"change: " + c.what, merge(habitatOf(c.of, c.stored).Object, mustRead(c.updated)), habitatOf(c.of, c.stored).Object})
	}
	for what, c := range legacy {
		all = append(all, row{"legacy: " + what, merge(habitatOf(c.of, c.stored).Object, mustRead(touched)), habitatOf(c.of, c.stored).Object})
	}
	return all
}

// Each rule and each limit of the definition is needed: without it, a test of the
// tables fails.
func TestEachRuleOfHabitatsIsNeeded(t *testing.T) {
	kit.Long(t, "each rule is left out once")
	shipped := shippedSchema(t)
	whole, err := compile(shipped)
	kit.Must(t, err)
	rows, want := rows(), map[string]string{}
	for _, r := range rows {
		want[r.what] = whole.say(t, r)
	}
	for _, c := range allCells() {
		if said := want["creation: "+c.what]; (said == "") != (c.want == "") && !strings.Contains(c.want, "unknown field") {
			t.Errorf("%s: without a server, %q is said", c.what, said)
		}
	}
	all := faults("", shipped)
	for what, plant := range all {
		faulty := shipped.DeepCopy()
		plant(faulty)
		rules, err := compile(faulty)
		if err != nil {
			continue // the server would refuse such a schema
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return rules.say(t, r) != want[r.what] }) {
			t.Errorf("without %s nothing is red", what)
		}
	}
	if len(all) < 130 {
		t.Errorf("%d faults are planted", len(all))
	}
	t.Logf("%d faults are planted", len(all))
}

// without returns a copy without one element.
func without[T any](list []T, i int) []T { return slices.Concat(list[:i], list[i+1:]) }

// faults returns the schemas without one rule or one limit, for the fields at a path
// and below. It skips fields that only the controller writes.
func faults(path string, of *apiextensionsv1.JSONSchemaProps) map[string]func(*apiextensionsv1.JSONSchemaProps) {
	all := map[string]func(*apiextensionsv1.JSONSchemaProps){}
	if path == ".status" {
		return all
	}
	plant := func(what string, is bool, fault func(*apiextensionsv1.JSONSchemaProps)) {
		if is {
			all[path+": "+what] = fault
		}
	}
	for i, rule := range of.XValidations {
		plant(fmt.Sprintf("rule %d, %s", i, rule.Message), true, func(s *apiextensionsv1.JSONSchemaProps) { s.XValidations = without(s.XValidations, i) })
	}
	for i, name := range of.Required {
		plant("required "+name, true, func(s *apiextensionsv1.JSONSchemaProps) { s.Required = without(s.Required, i) })
	}
	for i, value := range of.Enum {
		plant("value "+string(value.Raw), true, func(s *apiextensionsv1.JSONSchemaProps) { s.Enum = without(s.Enum, i) })
	}
	plant("enum", len(of.Enum) > 0, func(s *apiextensionsv1.JSONSchemaProps) { s.Enum = nil })
	plant("maxLength", of.MaxLength != nil, func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength = nil })
	plant("minLength", of.MinLength != nil, func(s *apiextensionsv1.JSONSchemaProps) { s.MinLength = nil })
	plant("maxItems", of.MaxItems != nil, func(s *apiextensionsv1.JSONSchemaProps) { s.MaxItems = nil })
	plant("minimum", of.Minimum != nil, func(s *apiextensionsv1.JSONSchemaProps) { s.Minimum = nil })
	plant("maximum", of.Maximum != nil, func(s *apiextensionsv1.JSONSchemaProps) { s.Maximum = nil })
	plant("pattern", of.Pattern != "", func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = "" })
	plant("the keys of the list", of.XListType != nil, func(s *apiextensionsv1.JSONSchemaProps) { s.XListType, s.XListMapKeys = nil, nil })
	for name, child := range of.Properties {
		for what, fault := range faults(path+"."+name, &child) {
			all[what] = func(s *apiextensionsv1.JSONSchemaProps) {
				child := s.Properties[name]
				fault(&child)
				s.Properties[name] = child
			}
		}
	}
	if of.Items != nil {
		for what, fault := range faults(path+"[]", of.Items.Schema) {
			all[what] = func(s *apiextensionsv1.JSONSchemaProps) { fault(s.Items.Schema) }
		}
	}
	return all
}
