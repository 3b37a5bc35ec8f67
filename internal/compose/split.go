package compose

import "bytes"

// Part is one object of an Application, with the observer schema that it gets.
type Part struct {
	Object

	Schema []byte
}

// bytes is the size of the part in the spec, with the lines that separate documents.
func (p Part) bytes() int {
	size := len(p.Text) + len(separator)
	if len(p.Schema) > 0 {
		size += len(p.Schema) + len(separator)
	}
	return size
}

const separator = "---\n"

// Split distributes objects to as many Applications as they need, in the order of the input: an
// Application ends where the next object would exceed one of the limits. Objects that are too large by
// themselves are alone, so that their refusal names them.
func Split(parts []Part, maxObjects, maxBytes int) [][]Part {
	var groups [][]Part
	size := 0
	for _, part := range parts {
		last := len(groups) - 1
		if last < 0 || len(groups[last]) == maxObjects || size+part.bytes() > maxBytes {
			groups, last, size = append(groups, nil), last+1, 0
		}
		groups[last] = append(groups[last], part)
		size += part.bytes()
	}
	return groups
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
