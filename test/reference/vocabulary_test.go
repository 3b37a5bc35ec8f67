package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// The reference lists the annotations that admission lets users write, and the one that it writes itself.
func TestVocabularyHasTheAnnotationsOfUsers(t *testing.T) {
	var told []string
	for _, name := range annotationNames() {
		if name.On == "Application" && name.Key != application.HeldByAnnotation {
			check.Equal(t, name.Key+" on an Application: writer", byUser, name.Writer)
			told = append(told, name.Key)
		}
	}
	check.Equal(t, "annotations that are told", sorted(application.UserAnnotations()), sorted(told))
}

// Each listed value can be parsed, and all other values are refused.
func TestVocabularyHasTheValues(t *testing.T) {
	checked := 0
	for _, name := range annotationNames() {
		if len(name.Values) == 0 || name.Key == application.FormatAnnotation {
			continue
		}
		checked++
		for _, value := range append(name.Values, "nonsense") {
			cm := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name.Key: value}}}
			_, refusals := application.WishesOf(&cm)
			check.Equal(t, name.Key+": "+value+" is refused", value == "nonsense", len(refusals) > 0)
		}
	}
	if checked < 6 {
		t.Errorf("%d annotations have values that can be counted: that are too few", checked)
	}
}

// The listed writers of a key of the data are those that may write it.
func TestVocabularyHasTheWriters(t *testing.T) {
	const cluster = clusterPart
	var keys []string
	for _, name := range dataKeyNames() {
		key := name.Key
		if name.Writer == byUser {
			keys = append(keys, key)
		}
		var want writer
		switch {
		case application.IsSpecKey(key):
			want = byUser
		case !application.IsAgentKey(key):
			want = byWebhook
		case application.IsKeyOf(key, cluster, false):
			want = byAgent
		default:
			want = byAgentOfTarget
		}
		check.Equal(t, key+": writer", want, name.Writer)
	}
	check.Equal(t, "keys that are told", sorted(application.SpecKeys()), sorted(keys))
}

// The tables list every name and every state of pkg/application.
func TestVocabularyIsWhole(t *testing.T) {
	told := map[string]bool{}
	for _, names := range [][]ownName{annotationNames(), dataKeyNames(), labelNames(), finalizerNames()} {
		for _, name := range names {
			told[name.Key] = true
			if name.On == "" || name.Writer == "" || name.Effect == "" {
				t.Errorf("%s: what carries it, who writes it, or its effect is missing", name.Key)
			}
		}
	}
	for _, state := range application.States() {
		told[string(state)] = true
		if stateMeanings()[state] == "" {
			t.Errorf("%s: its meaning is missing", state)
		}
	}
	spelled := constants(t, "names.go", "status.go")
	if len(spelled) < 40 {
		t.Fatalf("%d names were found in the package: that are too few", len(spelled))
	}
	for _, constant := range slices.Sorted(maps.Keys(spelled)) {
		if value := spelled[constant]; !told[value] {
			t.Errorf("%s, %s, is told nowhere", constant, value)
		}
	}
}

// constants returns the names and states among the constants of files of pkg/application, by
// the constants' own names.
func constants(t *testing.T, files ...string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg", "application", file), nil, 0)
		check.Must(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					values[name.Name] = spelledText(spec.Values[i], values)
				}
			}
			return true
		})
	}
	maps.DeleteFunc(values, func(name, _ string) bool {
		for _, kind := range []string{"Annotation", "Key", "Label"} {
			if strings.HasSuffix(name, kind) {
				return false
			}
		}
		return !strings.HasPrefix(name, "State")
	})
	return values
}

// spelledText returns the value of a constant that is a concatenation.
func spelledText(expression ast.Expr, known map[string]string) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return strings.Trim(e.Value, `"`)
	case *ast.Ident:
		return known[e.Name]
	case *ast.SelectorExpr: // the only one is the domain
		return manifest.Domain
	case *ast.BinaryExpr:
		return spelledText(e.X, known) + spelledText(e.Y, known)
	}
	return ""
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
