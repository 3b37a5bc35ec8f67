package schema

import "slices"

// control is the control dictionary of a list; ok if both lengths were understood.
type control struct {
	min, max int
	keys     keys
	ok       bool
}

// control splits a list into its elements and its control dictionary.
func (p *parser) control(value []any) ([]any, control) {
	var fields map[string]any
	if len(value) > 0 {
		fields, _ = value[len(value)-1].(map[string]any)
	}
	minimum, hasMin := fields[minLengthKey]
	maximum, hasMax := fields[maxLengthKey]
	if !hasMin && !hasMax {
		p.add("control-missing",
			"Special list control dictionary not found: end the list with {%s: 0, %s: 0}", minLengthKey, maxLengthKey)
		return value, control{}
	}
	items := value[:len(value)-1]
	if !hasMin || !hasMax {
		p.add("control-malformed",
			"Special list control dictionary malformed: it needs both %s and %s", minLengthKey, maxLengthKey)
		return items, control{}
	}
	p.extraKeys(fields)
	read := p.bounds(minimum, maximum)
	if stated, ok := fields[listKeyKey]; ok {
		read.keys = p.listKey(stated)
	}
	return items, read
}

func (p *parser) extraKeys(fields map[string]any) {
	for _, name := range sortedNames(fields) {
		if name != minLengthKey && name != maxLengthKey && name != listKeyKey {
			p.add("control-extra-key", "Unknown key '%s' in the list control dictionary", name)
		}
	}
}

func (p *parser) bounds(minimum, maximum any) control {
	least, leastOK := p.bound("min", minLengthKey, minimum)
	most, mostOK := p.bound("max", maxLengthKey, maximum)
	ok := leastOK && mostOK
	if ok && most != 0 && most < least {
		p.add("max-below-min", "%s is inferior to %s", maxLengthKey, minLengthKey)
	}
	return control{min: least, max: most, ok: ok}
}

func (p *parser) bound(code, name string, value any) (int, bool) {
	number, ok := value.(int64)
	switch {
	case !ok:
		p.add(code+"-not-integer", "%s should be an integer", name)
	case number < 0:
		p.add(code+"-negative", "Invalid value for %s: %d is negative", name, number)
	default:
		return int(number), true
	}
	return 0, false
}

// listKey reads the name of a field, or a list of such names.
func (p *parser) listKey(value any) keys {
	names, ok := value.([]any)
	if !ok {
		names = []any{value}
	}
	var read keys
	for _, raw := range names {
		name, _ := raw.(string)
		if name == "" || slices.Contains(read, Key{Name: name}) {
			read = nil
			break
		}
		read = append(read, Key{Name: name})
	}
	if len(read) == 0 {
		p.add("key-malformed", "%s should be the name of a field, or a list of such names, each once", listKeyKey)
	}
	return read
}

// checkKeys refuses keys that the manifest's elements do not have.
func (p *parser) checkKeys(stated keys, elements []any) {
	if len(stated) == 0 {
		return
	}
	for i, element := range elements {
		if !stated.known(element) {
			p.add("key-missing", "Element %d of the manifest's list has no %s to be found by: add it, or leave %s out",
				i, stated.names(), listKeyKey)
			return
		}
	}
	if !stated.distinct(elements) {
		p.add("key-duplicate", "Two elements of the manifest's list have the same %s: name further fields in %s",
			stated.names(), listKeyKey)
	}
}

func sortedNames(values map[string]any) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
