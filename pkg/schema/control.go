package schema

import "slices"

// IsLengthKey reports whether a key of an observer schema bounds the length of a list.
func IsLengthKey(name string) bool { return name == MinLengthKey || name == MaxLengthKey }

// control is the control dictionary of a list, without its invalid parts.
type control struct {
	min, max     int
	minOK, maxOK bool
	keys         keys
	// stated is the value that the keys were read from.
	stated any
}

// readControl splits a list into its elements and its control dictionary.
func readControl(r *report, value []any) ([]any, control) {
	var fields map[string]any
	if len(value) > 0 {
		fields, _ = value[len(value)-1].(map[string]any)
	}
	_, hasMin := fields[MinLengthKey]
	_, hasMax := fields[MaxLengthKey]
	if !hasMin && !hasMax {
		r.add("control-missing",
			"Special list control dictionary not found: end the list with {%s: 0, %s: 0}", MinLengthKey, MaxLengthKey)
		return value, control{}
	}
	if !hasMin || !hasMax {
		r.add("control-malformed",
			"Special list control dictionary malformed: it needs both %s and %s", MinLengthKey, MaxLengthKey)
	}
	reportExtraKeys(r, fields)
	read := readBounds(r, fields)
	if stated, ok := fields[ListKeyKey]; ok {
		read.keys, read.stated = readListKey(r, stated), clone(stated)
	}
	return value[:len(value)-1], read
}

func reportExtraKeys(r *report, fields map[string]any) {
	for _, name := range sortedNames(fields) {
		if name != MinLengthKey && name != MaxLengthKey && name != ListKeyKey {
			r.add("control-extra-key", "Unknown key '%s' in the list control dictionary", name)
		}
	}
}

func readBounds(r *report, fields map[string]any) control {
	var read control
	read.min, read.minOK = readBound(r, "min", MinLengthKey, fields)
	read.max, read.maxOK = readBound(r, "max", MaxLengthKey, fields)
	if read.minOK && read.maxOK && read.max != 0 && read.max < read.min {
		r.add("max-below-min", "%s is inferior to %s", MaxLengthKey, MinLengthKey)
	}
	return read
}

func readBound(r *report, code, name string, fields map[string]any) (int, bool) {
	value, stated := fields[name]
	number, ok := value.(int64)
	switch {
	case !stated:
	case !ok:
		r.add(code+"-not-integer", "%s should be an integer", name)
	case number < 0:
		r.add(code+"-negative", "Invalid value for %s: %d is negative", name, number)
	default:
		return int(number), true
	}
	return 0, false
}

// maxKeys is more than any list needs, and limits the cost of each comparison.
const maxKeys = 8

// readListKey reads the name of a field, or a list of such names.
func readListKey(r *report, value any) keys {
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
		r.add("key-malformed", "%s should be the name of a field, or a list of at most %d such names, each once", ListKeyKey, maxKeys)
	}
	return read
}

// checkKeys refuses keys that the manifest's elements do not have. If the API's type is unknown, a field
// with a default may be absent: an element with a part of its key is a warning.
func checkKeys(r *report, stated keys, elements []any, isUnknown bool) {
	if len(stated) == 0 {
		return
	}
	isIncomplete := func(element any) bool { return !stated.known(element) }
	isRefused := isIncomplete
	if isUnknown {
		isRefused = func(element any) bool { return !stated.partly(element) }
	}
	if i := slices.IndexFunc(elements, isRefused); i >= 0 {
		r.add("key-missing", "Element %d of the manifest's list has no %s to be found by: add it, or leave %s out",
			i, stated.names(), ListKeyKey)
	} else if i := slices.IndexFunc(elements, isIncomplete); i >= 0 {
		r.warn("key-partly-missing", "Element %d of the manifest's list has no %s: this is right if the definition of the kind has a default for it; without a default, add it, or %s has no effect",
			i, stated.missing(elements[i]).names(), ListKeyKey)
	}
	if !stated.distinct(elements) {
		r.add("key-duplicate", "Two elements of the manifest's list have the same %s: name further fields in %s",
			stated.names(), ListKeyKey)
	}
}

// The keys of the control dictionary. It is the last element of every list of a schema, and of the
// same list in a projection.
const (
	MinLengthKey     = "observer_schema_list_min_length"
	MaxLengthKey     = "observer_schema_list_max_length"
	CurrentLengthKey = "observer_schema_list_current_length"
	// ListKeyKey is an addition of this project: the merge keys of the list.
	ListKeyKey = "observer_schema_list_key"
)

func writtenControl(n list) map[string]any {
	control := map[string]any{MinLengthKey: int64(n.min), MaxLengthKey: int64(n.max)}
	if n.stated != nil {
		control[ListKeyKey] = clone(n.stated)
	}
	return control
}
