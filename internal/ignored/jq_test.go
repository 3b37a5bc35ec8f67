package ignored

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {"a/b": x, "c~d": y}}
spec:
  replicas: 2
  x: {"a.b": 1, "": 2, "0": 3}
  template:
    spec:
      containers:
      - {name: web, image: "web:1", args: [serve, --debug], weight: 1}
      - {name: proxy, image: "proxy:1", weight: 2.5}
      volumes: []
`

// texts returns the places in a form that people read. Lists have an asterisk.
func (f places) texts() []string {
	var texts []string
	for _, path := range f.paths {
		texts = append(texts, path.String())
	}
	for _, list := range f.lists {
		texts = append(texts, list.String()+"*")
	}
	return texts
}

// A JSON pointer selects a field, or an element by its index. A place that does not exist is not
// ignored. An index of a list lets the list get longer.
func TestPointers(t *testing.T) {
	for pointer, want := range map[string][]string{
		"":                                       {""},
		"/spec/replicas":                         {"spec.replicas"},
		"/spec/paused":                           nil,
		"/metadata/labels/a~1b":                  {`metadata.labels["a/b"]`},
		"/metadata/labels/c~0d":                  {"metadata.labels.c~d"},
		"/metadata/labels/c~01d":                 nil, // it is c~1d
		"/spec/x/0":                              {"spec.x.0"},
		"/spec/template/spec/containers/1/image": {"spec.template.spec.containers[1].image"},
		"/spec/template/spec/containers/1":       {"spec.template.spec.containers[1]", "spec.template.spec.containers*"},
		"/spec/template/spec/containers/-":       nil,
		"/spec/template/spec/containers/-1":      {"spec.template.spec.containers*"},
		"/spec/template/spec/containers/2/image": nil,
	} {
		p, err := pointerOf(pointer)
		check.Must(t, err)
		check.Equal(t, pointer, want, placesOf(parsed(t, deployment), p).texts())
	}
	for _, text := range []string{"spec/replicas", " /spec", ".spec"} {
		_, err := pointerOf(text)
		check.Fails(t, text, err, "a JSON pointer starts with a slash")
	}
}

// expressionOf reads an expression of jq. The error is the line for what cannot be translated.
func expressionOf(text string) (expression, error) {
	var s Source
	var r rule
	s.addExpression(&r, "place", text)
	if len(s.untranslated) > 0 {
		return expression{}, errors.New(s.untranslated[0])
	}
	return r.expressions[0], nil
}

// What an expression selects is what jq deletes by it, whatever the expression computes before.
func TestExpressions(t *testing.T) {
	const containers = ".spec.template.spec.containers"
	for text, want := range map[string][]string{
		".":                       {""},
		".spec.replicas":          {"spec.replicas"},
		`.["spec"]."replicas"?`:   {"spec.replicas"},
		".spec.paused":            nil,
		`.spec.x["a.b"]`:          {`spec.x["a.b"]`},
		".spec.x | .[keys[0]]":    {`spec.x[""]`},
		containers:                {"spec.template.spec.containers"},
		containers + "[].image":   {"spec.template.spec.containers[0].image", "spec.template.spec.containers[1].image"},
		containers + "[].args[0]": {"spec.template.spec.containers[0].args[0]", "spec.template.spec.containers[0].args*"},
		containers + "[0]":        {"spec.template.spec.containers[0]", "spec.template.spec.containers*"},
		containers + "[7]":        {"spec.template.spec.containers*"},
		containers + "[-1]":       {"spec.template.spec.containers[1]", "spec.template.spec.containers*"},
		containers + "[99999999999999999999].image":      nil,
		containers + `[] | select(.name == "proxy")`:     {"spec.template.spec.containers[1]", "spec.template.spec.containers*"},
		containers + `[] | select(.name == "istio")`:     nil,
		containers + `[] | select(.name | test("^w"))`:   {"spec.template.spec.containers[0]", "spec.template.spec.containers*"},
		containers + "[] | select(.weight > 2) | .image": {"spec.template.spec.containers[1].image"},
		`select(.kind == "Deployment") | .spec.replicas`: {"spec.replicas"},

		// They fail, also after they have selected a field.
		".spec | keys":                              nil,
		".spec.replicas, error":                     nil,
		".spec.replicas, (.spec | halt_error)":      nil,
		".spec.template.spec.containers[].args[].x": nil,
		"getpath([$ENV.HOME])":                      nil,
		".metadata | .[$ENV.HOME // \"labels\"]":    {"metadata.labels"},
		`"x" | modulemeta`:                          nil,
		"empty":                                     nil,
	} {
		x, err := expressionOf(text)
		check.Must(t, err)
		object := parsed(t, deployment)
		selected, err := x.in(t.Context(), object)
		if !errors.Is(err, errFails) {
			check.Must(t, err)
		}
		check.Equal(t, text, want, placesOf(object, selected...).texts())
		check.Equal(t, "the object after "+text, parsed(t, deployment), object)
	}
}

// What is no expression of jq is reported, and what reads from outside the object.
func TestExpressionsThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"":               `place: "": unexpected token ")"`,
		".spec[":         `place: ".spec[": unexpected token ")"`,
		"spec.replicas":  `place: "spec.replicas": function not defined: spec/0`,
		"$x":             `place: "$x": variable not defined: $x`,
		"input":          `place: "input": input(s)/0 is not allowed`,
		"debug":          `place: "debug": function not defined: debug/0`,
		`include "x"; .`: `place: "include \"x\"; .": unexpected token "include"`,
	} {
		_, err := expressionOf(text)
		check.Fails(t, text, err, want)
	}
}

// An expression that fails on the manifest alone is reported for what is observed despite it.
func TestExpressionsThatFailOnTheManifest(t *testing.T) {
	for text, want := range map[string][]string{
		".spec.replicas, .status.conditions[].type": {`spec.ignoreDifferences[0].jqPathExpressions[0] ignores nothing of Deployment web: ".spec.replicas, .status.conditions[].type": it reads fields that the manifest leaves out, and fails without them`},
		".status.conditions[].type":                 nil,
		".status.conditions[], .status[0]":          {`spec.ignoreDifferences[0].jqPathExpressions[0]: ".status.conditions[], .status[0]": it selects no field of the imported objects now`},
		".status.conditions[1:][], .status.x[]":     {`spec.ignoreDifferences[0].jqPathExpressions[0] ignores nothing of Deployment web: ".status.conditions[1:][], .status.x[]": it selects a slice of a list: select the elements by [] or by their indices`},
	} {
		target := targetOf(t, deployment, nil)
		target.Live.Object["status"] = parsed(t, "{x: {}, conditions: [{type: Available}, {type: Progressing}]}")
		translation := NewTranslation(read(t, replaced(argoRule, `{group: "*", kind: "*", jqPathExpressions: ["`+text+`"]}`)))
		change, err := translation.Apply(t.Context(), target)
		check.Must(t, err)
		check.Empty(t, text, change.Ignored)
		check.Equal(t, text, want, translation.Untranslated())
	}
}

// No expression can keep the command from an end, or fill the memory.
func TestLimitsOfExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"def f: f; f":                        "its evaluation takes longer than 1s",
		"repeat(.spec)":                      "it selects more than 10000 fields",
		".spec.template.spec.containers[1:]": "it selects a slice of a list: select the elements by [] or by their indices",
	} {
		x, err := expressionOf(text)
		check.Must(t, err)
		selected, err := x.in(t.Context(), parsed(t, deployment))
		check.Fails(t, text, err, want)
		check.Empty(t, text, selected)
	}
	x, err := expressionOf("limit(10000; repeat(.spec))")
	check.Must(t, err)
	selected, err := x.in(t.Context(), parsed(t, deployment))
	check.Must(t, err)
	check.Equal(t, "selected", 10_000, len(selected))
}

// An expression that exceeds a limit ignores nothing of this object, and the command prints it. An
// interrupted command ends.
func TestLimitsAreReported(t *testing.T) {
	const source = `{group: "*", kind: "*", jqPathExpressions: ["repeat(.spec)"], jsonPointers: [/spec/replicas]}`
	translation, target := NewTranslation(read(t, replaced(argoRule, source))), targetOf(t, deployment, nil)
	change, err := translation.Apply(t.Context(), target)
	check.Must(t, err)
	check.Equal(t, "ignored", 1, len(change.Ignored))
	check.Equal(t, "not translated", []string{`spec.ignoreDifferences[0].jqPathExpressions[0] ignores nothing of Deployment web: "repeat(.spec)": it selects more than 10000 fields`}, translation.Untranslated())

	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err = NewTranslation(read(t, replaced(argoRule, source))).Apply(ctx, target)
	check.Fails(t, "interrupted", err, context.Canceled.Error())
}

// An expression has to select a field of one of the objects only, also one that the manifest leaves out. What a failure says is not printed,
// because it has values.
func TestExpressionsThatSelectNothing(t *testing.T) {
	translation := NewTranslation(read(t, replaced(argoRule, `{group: "*", kind: "*", jqPathExpressions: [".spec.paused", ".spec.template.spec.containers[].image", ".spec.secret.x", ".spec | keys", ".metadata.managedFields[].time"]}`)))
	for _, object := range []string{deployment, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, spec: {secret: hunter2}}`} {
		_, err := translation.Apply(t.Context(), targetOf(t, object, []any{map[string]any{"manager": "hpa"}}))
		check.Must(t, err)
	}
	lines := translation.Untranslated()
	check.Equal(t, "not translated", []string{`spec.ignoreDifferences[0].jqPathExpressions[3]: ".spec | keys": it selects no field of the imported objects now`}, lines)
	if strings.Contains(strings.Join(lines, "\n"), "hunter2") {
		t.Error("a value was printed")
	}
}
