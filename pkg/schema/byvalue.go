package schema

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// ByValue returns the schema for an object of an unknown type: values with the same meaning are
// equal in any form. A null within a value equals an absent one. A quantity equals another of the
// same size if at least one of them is a number or has a unit: 0.5 and "500m", 4 and "4". "1.10"
// and "1.1" may be versions, and do not count as quantities. Labels and annotations are compared as
// texts.
func (s Schema) ByValue() Schema {
	fields := slices.Clone(s.root.fields)
	for i, f := range fields {
		if f.name != "metadata" {
			fields[i].node = byValue(f.node)
		}
	}
	s.root = s.root.with(fields)
	return s
}

func byValue(n node) node {
	switch n := n.(type) {
	case leaf:
		n.byValue = true
		return n
	case object:
		fields := slices.Clone(n.fields)
		for i := range fields {
			fields[i].node = byValue(fields[i].node)
		}
		return n.with(fields)
	case list:
		n.items = slices.Clone(n.items)
		for i := range n.items {
			n.items[i] = byValue(n.items[i])
		}
		return n
	}
	return n
}

// sameValue compares values that are not [equal].
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameFields(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	}
	return equal(a, b) || sameQuantity(a, b)
}

func sameFields(a, b map[string]any) bool {
	for name, value := range b {
		if value != nil && a[name] == nil {
			return false
		}
	}
	for name, value := range a {
		if value != nil && !sameValue(value, b[name]) {
			return false
		}
	}
	return true
}

func sameQuantity(a, b any) bool {
	left, leftIsSure, leftOK := quantityText(a)
	right, rightIsSure, rightOK := quantityText(b)
	if !leftOK || !rightOK || !leftIsSure && !rightIsSure {
		return false
	}
	x, err := resource.ParseQuantity(left)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(right)
	return err == nil && x.Cmp(y) == 0
}

// longestQuantity bounds the cost of a comparison.
const longestQuantity = 32

// quantityText returns the text of a possible quantity. sure reports that it cannot be another
// text, because it is a number or has a unit. Exponents are excluded: clients do not write them,
// and "1e999999999" is a short text for a very long number.
func quantityText(value any) (text string, sure, ok bool) {
	switch value := value.(type) {
	case int64:
		return strconv.FormatInt(value, 10), true, true
	case float64:
		text = strconv.FormatFloat(value, 'f', -1, 64)
		return text, true, len(text) <= longestQuantity
	case string:
		if len(value) > longestQuantity {
			return "", false, false
		}
		unit := strings.TrimLeft(value, "+-.0123456789")
		return value, unit != "", len(unit) < len(value) && isUnit(unit)
	}
	return "", false, false
}

func isUnit(text string) bool {
	switch text {
	case "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return true
	}
	return false
}
