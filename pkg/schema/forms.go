package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
)

// Form is a way in which an API server writes an observed value down: "500m"
// for 0.5, nothing for a zero, a default for nothing. Who finds that out, from
// the types of the API or from the server's answers, tells the schema by
// [Schema.Accept].
type Form struct {
	// Path leads through the desired object: its indices are those of the
	// desired elements.
	Path Path `json:"path"`
	// Want is the desired value, Have is what it becomes; nil is absent. Of a
	// list they are lengths.
	Want any `json:"want,omitempty"`
	Have any `json:"have,omitempty"`
}

// UnmarshalJSON keeps integers: of a large one, a float is another value.
func (f *Form) UnmarshalJSON(text []byte) error {
	type form Form // without this method
	return json.Unmarshal(text, (*form)(f))
}

// forms are those of one place of a schema.
type forms []Form

func (f forms) has(want, have any) bool {
	for i := range f {
		if equal(f[i].Want, want) && (f[i].Have == nil && have == nil || have != nil && equal(f[i].Have, have)) {
			return true
		}
	}
	return false
}

func (f forms) hasLength(want, have int) bool {
	return len(f) > 0 && f.has(int64(want), int64(have))
}

// Forms compares a desired object with the same object as the server wrote it:
// what is there written otherwise, and so should be no drift. A form counts for
// its desired value only, so that it says nothing any more when that changes. An
// element whose key was written otherwise is another element, and has no form.
func (s Schema) Forms(desired, written map[string]any) []Form {
	c := comparison{places: true}
	c.node(s.root, desired, written)
	var found []Form
	for _, difference := range c.found {
		slices.Reverse(difference.Path)
		switch difference.Kind {
		case Changed:
			if _, whole := s.at(difference.Path).(leaf); whole {
				found = append(found, Form{difference.Path, clone(difference.Want), clone(difference.Have)})
			}
		case TooShort, TooLong:
			want, have := lengthAt(desired, difference.Path), int64(len(difference.elements()))
			if want != have { // otherwise the desired length itself is not legal
				found = append(found, Form{difference.Path, want, have})
			}
		case Unknown:
		}
	}
	return found
}

func lengthAt(object map[string]any, path Path) int64 {
	items, _ := valueAt(object, path).([]any)
	return int64(len(items))
}

// Accept gives the schema under which these forms are as desired. A form whose
// path the schema does not observe has no effect.
func (s Schema) Accept(known []Form) Schema {
	if len(known) == 0 {
		return s
	}
	if root, ok := accept(s.root, known, 0).(object); ok {
		s.root = root
	}
	return s
}

// accept hands the forms down; depth steps of their paths lead here.
func accept(n node, known []Form, depth int) node {
	switch n := n.(type) {
	case leaf:
		n.forms = n.forms.with(known, depth)
		return n
	case object:
		fields := slices.Clone(n.fields)
		for step, below := range byStep(known, depth) {
			if at, found := n.find(step.Field); found && step.Index == notAnIndex {
				fields[at].node = accept(fields[at].node, below, depth+1)
			}
		}
		return object{fields: fields}
	case list:
		n.items = slices.Clone(n.items)
		for step, below := range byStep(known, depth) {
			if step.Index >= 0 && step.Index < len(n.items) {
				n.items[step.Index] = accept(n.items[step.Index], below, depth+1)
			}
		}
		n.forms = n.forms.with(known, depth)
		return n
	}
	return n
}

// byStep sorts the forms that lead further by where they lead.
func byStep(known []Form, depth int) map[Step][]Form {
	below := map[Step][]Form{}
	for _, form := range known {
		if depth < len(form.Path) {
			below[form.Path[depth]] = append(below[form.Path[depth]], form)
		}
	}
	return below
}

// with adds the forms that lead to here.
func (f forms) with(known []Form, depth int) forms {
	all := slices.Clone(f)
	for _, form := range known {
		if len(form.Path) == depth && !f.has(form.Want, form.Have) {
			all = append(all, Form{Want: clone(form.Want), Have: clone(form.Have)})
		}
	}
	return all
}
