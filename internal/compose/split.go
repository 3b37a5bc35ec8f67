package compose

import "bytes"

// Part is one object of an Application, with the observer schema that it gets.
type Part struct {
	Object

	Schema []byte
}

const separator = "---\n"

// Limits bound the spec of one Application: its objects, and the bytes of its manifest and of its observer schemas.
type Limits struct{ Objects, Manifest, Schemas int }

// Split distributes objects to as many Applications as they need, in the order of the input: an
// Application ends where the next object would exceed one of the limits. Objects that are too large by
// themselves are alone, so that their refusal names them.
func Split(parts []Part, most Limits) [][]Part {
	var groups [][]Part
	var size Limits
	for _, part := range parts {
		last := len(groups) - 1
		next := size.with(part)
		if last < 0 || next.Objects > most.Objects || next.Manifest > most.Manifest || next.Schemas > most.Schemas {
			groups, last, next = append(groups, nil), last+1, Limits{}.with(part)
		}
		groups[last], size = append(groups[last], part), next
	}
	return groups
}

// with returns the size with one part more, and the line before each document.
func (l Limits) with(part Part) Limits {
	l.Objects++
	l.Manifest += len(part.Text) + len(separator)
	if len(part.Schema) > 0 {
		l.Schemas += len(part.Schema) + len(separator)
	}
	return l
}

// Spec returns the manifest and the observer schemas of the parts of one Application. The
// observer schemas are empty if no part has one.
func Spec(parts []Part) (manifest, observerSchema string) {
	var manifests, schemas [][]byte
	for _, part := range parts {
		manifests = append(manifests, part.Text)
		if len(part.Schema) > 0 {
			schemas = append(schemas, part.Schema)
		}
	}
	return joined(manifests), joined(schemas)
}

func joined(documents [][]byte) string {
	var text bytes.Buffer
	for i, document := range documents {
		if i > 0 {
			text.WriteString(separator)
		}
		text.Write(bytes.Trim(document, "\n"))
		text.WriteByte('\n')
	}
	return text.String()
}
