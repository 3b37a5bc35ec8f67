package schema

import "slices"

// IsLengthKey tells if a key of an observer schema bounds the length of a list.
func IsLengthKey(name string) bool { return name == MinLengthKey || name == MaxLengthKey }

// control is the control dictionary of a list, as far as it was understood.
type control struct {
	min, max     int
	minOK, maxOK bool
	keys         keys
	// stated is what keys were read from.
	stated any
}

// control splits a list into its elements and its control dictionary.
func (p *parser) control(value []any) ([]any, control) {
	var fields map[string]any
	if len(value) > 0 {
		fields, _ = value[len(value)-1].(map[string]any)
	}
	_, hasMin := fields[MinLengthKey]
	_, hasMax := fields[MaxLengthKey]
	if !hasMin && !hasMax {
		p.add("control-missing",
			"Special list control dictionary not found: end the list with {%s: 0, %s: 0}", MinLengthKey, MaxLengthKey)
		return value, control{}
	}
	if !hasMin || !hasMax {
		p.add("control-malformed",
			"Special list control dictionary malformed: it needs both %s and %s", MinLengthKey, MaxLengthKey)
	}
	p.extraKeys(fields)
	read := p.bounds(fields)
	if stated, ok := fields[ListKeyKey]; ok {
		read.keys, read.stated = p.listKey(stated), clone(stated)
	}
	return value[:len(value)-1], read
}

func (p *parser) extraKeys(fields map[string]any) {
	for _, name := range sortedNames(fields) {
		if name != MinLengthKey && name != MaxLengthKey && name != ListKeyKey {
			p.add("control-extra-key", "Unknown key '%s' in the list control dictionary", name)
		}
	}
}

func (p *parser) bounds(fields map[string]any) control {
	var read control
	read.min, read.minOK = p.bound("min", MinLengthKey, fields)
	read.max, read.maxOK = p.bound("max", MaxLengthKey, fields)
	if read.minOK && read.maxOK && read.max != 0 && read.max < read.min {
		p.add("max-below-min", "%s is inferior to %s", MaxLengthKey, MinLengthKey)
	}
	return read
}

func (p *parser) bound(code, name string, fields map[string]any) (int, bool) {
	value, stated := fields[name]
	number, ok := value.(int64)
	switch {
	case !stated:
	case !ok:
		p.add(code+"-not-integer", "%s should be an integer", name)
	case number < 0:
		p.add(code+"-negative", "Invalid value for %s: %d is negative", name, number)
	default:
		return int(number), true
	}
	return 0, false
}

// maxKeys is more than any list has, and as much as each comparison can bear.
const maxKeys = 8

// listKey reads the name of a field, or a list of such names.
func (p *parser) listKey(value any) keys {
	names, ok := value.([]any)
	if !ok {
		names = []any{value}
	}
	var read keys
	for _, raw := range names {
		name, _ := raw.(string)
		if name == "" || len(read) == maxKeys || slices.Contains(read, Key{Name: name}) {
			read = nil
			break
		}
		read = append(read, Key{Name: name})
	}
	if len(read) == 0 {
		p.add("key-malformed", "%s should be the name of a field, or a list of at most %d such names, each once", ListKeyKey, maxKeys)
	}
	return read
}

// checkKeys refuses keys that the manifest's elements do not have.
func (p *parser) checkKeys(stated keys, elements []any) {
	if len(stated) == 0 {
		return
	}
	if i := slices.IndexFunc(elements, func(element any) bool { return !stated.known(element) }); i >= 0 {
		p.add("key-missing", "Element %d of the manifest's list has no %s to be found by: add it, or leave %s out",
			i, stated.names(), ListKeyKey)
	}
	if !stated.distinct(elements) {
		p.add("key-duplicate", "Two elements of the manifest's list have the same %s: name further fields in %s",
			stated.names(), ListKeyKey)
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
