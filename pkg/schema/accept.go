package schema

import "slices"

// Forms compares a desired object with the object that the server stored. It returns the values
// that the server stores in another form, which is no drift. A form counts only for its desired
// value, so it has no effect when that changes. An element whose key has another form is another
// element, and has no form.
func (s Schema) Forms(desired, written map[string]any) []Form {
	c := comparison{places: true}
	var found []Form
	for _, difference := range c.compare(s.root, desired, written) {
		switch difference.Kind {
		case Changed:
			if _, whole := nodeAt(s.root, difference.Path).(leaf); whole {
				found = append(found, Form{difference.Path, clone(difference.Want), clone(difference.Have)})
			}
		case TooShort, TooLong:
			want, have := lengthAt(desired, difference.Path), int64(len(itemsOf(difference.Have)))
			if want != have { // if equal, the desired length itself is invalid
				found = append(found, Form{difference.Path, want, have})
			}
		case Unknown:
		}
	}
	return found
}

func lengthAt(object map[string]any, path Path) int64 {
	return int64(len(itemsOf(ValueAt(object, path))))
}

// Accept returns the schema that accepts these forms as desired. A form whose path the schema does
// not observe has no effect.
func (s Schema) Accept(known []Form) Schema {
	if len(known) == 0 {
		return s
	}
	if root, ok := accept(s.root, known, 0).(object); ok {
		s.root = root
	}
	return s
}

// accept passes the forms down the tree. The first depth steps of their paths lead to this node.
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

// byStep groups the forms by their next step. It omits forms that end here.
func byStep(known []Form, depth int) map[Step][]Form {
	below := map[Step][]Form{}
	for _, form := range known {
		if depth < len(form.Path) {
			below[form.Path[depth]] = append(below[form.Path[depth]], form)
		}
	}
	return below
}

// Keep returns the remembered forms that still apply to this desired object, in order. The schema
// observes their path, and the desired value is the one that the form was found for. The others
// would have no effect.
func (s Schema) Keep(desired map[string]any, known []Form) []Form {
	var kept []Form
	for _, form := range known {
		if isCurrent(s.root, desired, form) {
			kept = append(kept, form)
		}
	}
	return kept
}

func isCurrent(root object, desired map[string]any, form Form) bool {
	switch nodeAt(root, form.Path).(type) {
	case leaf:
		return equal(form.Want, ValueAt(desired, form.Path))
	case list:
		return equal(form.Want, lengthAt(desired, form.Path))
	}
	return false
}
