package schema

// Keep gives those of the remembered forms that still say something of this
// desired object, in their order: the schema observes the path, and what is
// desired there is what the form was found for. Accepting the others as well
// would make no difference.
func (s Schema) Keep(desired map[string]any, known []Form) []Form {
	var kept []Form
	for _, form := range known {
		if s.keeps(desired, form) {
			kept = append(kept, form)
		}
	}
	return kept
}

func (s Schema) keeps(desired map[string]any, form Form) bool {
	switch s.at(form.Path).(type) {
	case leaf:
		return equal(form.Want, valueAt(desired, form.Path))
	case list:
		return equal(form.Want, lengthAt(desired, form.Path))
	}
	return false
}

// at gives what the schema says at the path, nil if it observes nothing there.
func (s Schema) at(path Path) node {
	n := node(s.root)
	for _, step := range path {
		n = child(n, step)
	}
	return n
}

// child gives what a schema says one step further.
func child(n node, step Step) node {
	switch n := n.(type) {
	case object:
		if at, found := n.find(step.Field); found && step.Index == notAnIndex {
			return n.fields[at].node
		}
	case list:
		if step.Index >= 0 && step.Index < len(n.items) {
			return n.items[step.Index]
		}
	}
	return nil
}
