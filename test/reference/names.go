package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
)

func annotations(p *page, _ string) error {
	p.section("Annotations", "Only the writer under \"written by\" may set an annotation. Those of users belong on the Application itself, and `"+application.HoldUntilAnnotation+
		"` also on its objects.")
	nameTable(p, annotationNames())
	return nil
}

func dataKeys(p *page, _ string) error {
	p.section("Data", "The keys of the ConfigMap's `data`; what is large is compressed under the same key of `binaryData`.")
	nameTable(p, dataKeyNames())
	return nil
}

func labels(p *page, _ string) error {
	p.section("Labels and finalizers", "")
	nameTable(p, slices.Concat(labelNames(), finalizerNames()))
	return nil
}

func nameTable(p *page, names []ownName) {
	var rows [][]string
	for _, name := range names {
		rows = append(rows, []string{
			code(name.Key), name.On, string(name.Writer), cmp.Or(name.Form, codes(name.Values)), name.Default, name.Effect,
		})
	}
	p.table([]string{"name", "on", "written by", "values", "default", "effect"}, rows)
}

// keywordMeanings explains the constants of pkg/schema that name keywords.
func keywordMeanings() map[string]string {
	return map[string]string{
		"MinLengthKey":     "how many elements the list has at least",
		"MaxLengthKey":     "how many elements the list has at most; 0 is no bound",
		"ListKeyKey":       "the field, or a list of at most 8 fields, by which elements are found; without it those of the API, or else the index",
		"CurrentLengthKey": "no keyword of a schema: in documents of the agent, how many elements there are",
	}
}

func keywords(p *page, root string) error {
	found, err := keywordsOf(root)
	if err != nil {
		return err
	}
	p.section("Keywords of an observer schema", "An observed field is `null`. The last element of a list is an object with these keys, of which the first two are required.")
	var rows [][]string
	meanings := keywordMeanings()
	for _, name := range []string{"MinLengthKey", "MaxLengthKey", "ListKeyKey", "CurrentLengthKey"} {
		rows = append(rows, []string{code(found[name]), meanings[name]})
	}
	p.table([]string{"keyword", "meaning"}, rows)
	return nil
}

// keywordsOf returns the keywords by the constants of pkg/schema.
func keywordsOf(root string) (map[string]string, error) {
	constants, err := newSource(root).constants("pkg/schema")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for name, of := range constants {
		if text := valueOf(of, false); strings.HasPrefix(text, "observer_schema_") {
			found[name] = text
		}
	}
	return found, sameKeys("keywords of pkg/schema", found, keywordMeanings())
}

// sameKeys returns an error unless exactly the existing keys are explained.
func sameKeys[A, B any](what string, there map[string]A, explained map[string]B) error {
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if _, ok := explained[name]; !ok {
			return fmt.Errorf("%s: %s is explained nowhere: add it to the table of test/reference", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(explained)) {
		if _, ok := there[name]; !ok {
			return fmt.Errorf("%s: there is no %s any more: take it out of the table of test/reference", what, name)
		}
	}
	return nil
}
