package main

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
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

func keywords(p *page, _ string) error {
	p.section("Keywords of an observer schema", "An observed field is `null`. The last element of a list is an object with these keys, of which the first two are required.")
	p.table([]string{"keyword", "meaning"}, [][]string{
		{code(schema.MinLengthKey), "how many elements the list has at least"},
		{code(schema.MaxLengthKey), "how many elements the list has at most; 0 is no bound"},
		{code(schema.ListKeyKey), "the field, or a list of at most 8 fields, by which elements are found; without it those of the API, or else the index"},
		{code(schema.CurrentLengthKey), "no keyword of a schema: in documents of the agent, how many elements there are"},
	})
	return nil
}
