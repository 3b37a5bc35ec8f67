package schema

import "slices"

// Forms compares a desired object with the object that the server stored. It returns the values
// that the server stores in another form, and what it adds to closed values, which is no drift. A
// form counts only for its desired value, so it has no effect when that changes. An element whose
// key has another form is another element, and has no form.
func (s Schema) Forms(desired, written map[string]any) []Form {
	c := comparison{places: true}
	var found []Form
	for _, difference := range c.compare(s.root, desired, written) {
		switch difference.Kind {
		case Changed:
			if form, ok := s.valueForm(desired, difference); ok {
				found = append(found, form)
			}
		case TooShort, TooLong, Moved:
			if form, ok := s.listForm(desired, difference); ok {
				found = append(found, form)
			}
		case Unknown:
		}
	}
	return found
}

// valueForm returns the form of a value, of a field that the server adds to a closed object, or of
// an object or a list that it drops.
func (s Schema) valueForm(desired map[string]any, d Difference) (form Form, ok bool) {
	switch n := nodeAt(s.root, d.Path).(type) {
	case leaf:
		return Form{d.Path, clone(d.Want), clone(d.Have)}, true
	case object:
		return Form{d.Path, digest(ValueAt(desired, d.Path)), nil}, (n.closed || n.isKept) && d.Have == nil
	case list:
		return Form{d.Path, lengthAt(desired, d.Path), nil}, n.isKept && d.Have == nil
	case nil:
		return Form{d.Path, digest(ValueAt(desired, d.Path[:len(d.Path)-1])), digest(d.Have)}, true
	}
	return Form{}, false
}

// listForm returns the form of a list: the elements that the server adds, or the length that it
// cuts it to, or the order in which it keeps the desired elements.
func (s Schema) listForm(desired map[string]any, d Difference) (form Form, ok bool) {
	n, ok := nodeAt(s.root, d.Path).(list)
	wanted, elements := itemsOf(ValueAt(desired, d.Path)), itemsOf(d.Have)
	want, have := int64(len(wanted)), int64(len(elements))
	switch {
	case !ok:
		return Form{}, false
	case n.alignment == literal || d.Kind == TooShort && !n.byKey(wanted):
		return Form{d.Path, want, have}, want != have // if equal, the desired length itself is invalid
	case d.Kind == TooLong:
		var added []any
		for _, at := range d.Cut {
			added = append(added, digest(elements[at]))
		}
		return Form{d.Path, want, added}, len(added) > 0
	case d.Kind == Moved:
		var room scratch
		return Form{d.Path, want, n.pair(wanted, elements, &room).orderOf(len(wanted))}, true
	}
	return Form{}, false
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
			at, found := n.find(step.Field)
			switch {
			case step.Index != notAnIndex:
			case found:
				fields[at].node = accept(fields[at].node, below, depth+1)
			case n.closed && len(below[0].Path) == depth+1:
				n.forms = append(slices.Clip(n.forms), below...)
			}
		}
		for _, form := range known {
			if len(form.Path) == depth {
				n.forms = append(slices.Clip(n.forms), Form{Want: form.Want})
			}
		}
		return n.with(fields)
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
	case object:
		return form.Have == nil && form.Want == digest(ValueAt(desired, form.Path))
	case nil:
		if len(form.Path) == 0 {
			return false
		}
		above := form.Path[:len(form.Path)-1]
		parent, ok := nodeAt(root, above).(object)
		return ok && parent.closed && form.Want == digest(ValueAt(desired, above))
	}
	return false
}
