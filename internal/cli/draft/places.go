package draft

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Located is a value of a text, and the number of lines before its document.
type Located struct {
	*manifest.Tree

	before int
}

// LineInFile is the line where the value begins.
func (l Located) LineInFile() int { return l.before + l.Line }

// ResourcesIn returns the resources of a text, up to the first document that cannot be
// read. A document may be a list.
func ResourcesIn(parts []compose.Document) []Located {
	var resources []Located
	for _, part := range parts {
		switch {
		case part.Tree == nil:
			return resources
		case part.Tree.Items != nil:
			for _, item := range part.Tree.Items {
				resources = append(resources, Located{item, part.Before})
			}
		case part.Tree.Value != nil:
			resources = append(resources, Located{part.Tree, part.Before})
		}
	}
	return resources
}

// Find follows a path in the form of admission, spec.ports[0].name or
// metadata.labels[a.b/c], as far as the text has it. It returns the line where the path ends.
func (l Located) Find(path string) (line int, all bool) {
	line = l.LineInFile()
	for path != "" {
		next, at, rest := step(l.Tree, path)
		if next == nil {
			return line, false
		}
		l.Tree, line, path = next, l.before+at, rest
	}
	return line, true
}

// step follows one step of a path. Names may contain dots.
func step(tree *manifest.Tree, path string) (next *manifest.Tree, line int, rest string) {
	if bracketed, ok := strings.CutPrefix(path, "["); ok {
		inner, rest, _ := strings.Cut(bracketed, "]")
		if index, err := strconv.Atoi(inner); err == nil && index >= 0 && index < len(tree.Items) {
			return tree.Items[index], tree.Items[index].Line, rest
		}
	}
	longest := -1
	for _, field := range tree.Fields {
		for _, written := range []string{field.Name, "[" + field.Name + "]", "[" + strconv.Quote(field.Name) + "]"} {
			after, ok := strings.CutPrefix(strings.TrimPrefix(path, "."), written)
			if ok && len(written) > longest && (after == "" || after[0] == '.' || after[0] == '[') {
				next, line, rest, longest = field.Tree, field.KeyLine, after, len(written)
			}
		}
	}
	return next, line, rest
}

// Part is the text of one key of a spec, and the line where it begins.
type Part struct {
	File   string
	before int
	Text   string
	// Objects are those of a manifest that was composed of files.
	Objects []compose.Object
}

// Places finds the fields of an Application in the user's files.
type Places struct {
	File string
	// root is the ConfigMap; its tree is nil if no file has it.
	root Located
	// Parts are those whose lines are lines of a file.
	Parts map[string]Part
}

// literal matches the end of a line before a literal block.
var literal = regexp.MustCompile(`:\s*\|[0-9+-]*\s*(#.*)?$`)

// placesIn finds the parts of a ConfigMap that is a document of a file.
func placesIn(file string, document compose.Document) Places {
	p := Places{File: file, root: Located{document.Tree, document.Before}, Parts: map[string]Part{}}
	if document.Tree == nil {
		return p
	}
	lines := bytes.Split(document.Text, []byte("\n"))
	for _, field := range document.Tree.Fields {
		if field.Name != "data" {
			continue
		}
		for _, key := range field.Fields {
			text, ok := key.Value.(string)
			if ok && key.KeyLine <= len(lines) && literal.Match(bytes.TrimRight(lines[key.KeyLine-1], "\r")) {
				p.Parts[key.Name] = Part{File: file, before: document.Before + key.KeyLine, Text: text}
			}
		}
	}
	return p
}

// Of returns the place of a path, as file:line, or the file if no more is known. The message
// about it (says) may name a line of the text.
func (p Places) Of(path, says string) string {
	for _, key := range application.SpecKeys() {
		rest, ok := strings.CutPrefix(path, "data."+key)
		in, known := p.Parts[key]
		if ok && known && (rest == "" || rest[0] == '[') {
			return in.place(rest, says)
		}
	}
	if p.root.Tree == nil {
		return p.File
	}
	line, _ := p.root.Find(path)
	return fmt.Sprintf("%s:%d", p.File, line)
}

// said is the line that an error of a parser names, in which document.
var said = regexp.MustCompile(`(?s)^(?:.*\bdocument (\d+): )?.*\bline (\d+)\b`)

func (p Part) place(path, says string) string {
	index, rest := resourceAt(path)
	if index >= 0 && index < len(p.Objects) {
		return placeIn(p.Objects[index], rest)
	}
	if p.Objects != nil {
		return p.File
	}
	parts := compose.Documents([]byte(p.Text))
	line := 0
	if path == "" {
		line = lineSaid(parts, says)
	} else if resources := ResourcesIn(parts); index >= 0 && index < len(resources) {
		line, _ = resources[index].Find(rest)
	}
	return fmt.Sprintf("%s:%d", p.File, max(1, p.before+line))
}

// resourceAt splits a path below a manifest, [3].spec, into the index of the resource and the
// path below it. The index is -1 if the path has none.
func resourceAt(path string) (index int, rest string) {
	bracketed, ok := strings.CutPrefix(path, "[")
	inner, rest, _ := strings.Cut(bracketed, "]")
	index, err := strconv.Atoi(inner)
	if !ok || err != nil || index < 0 {
		return -1, ""
	}
	return index, rest
}

// placeIn returns the place of a path below an object.
func placeIn(object compose.Object, path string) string {
	if object.Tree == nil {
		return object.Place()
	}
	line, _ := Located{object.Tree, object.Line - object.Tree.Line}.Find(path)
	return fmt.Sprintf("%s:%d", object.File, line)
}

func lineSaid(parts []compose.Document, says string) int {
	words := said.FindStringSubmatch(says)
	if words == nil {
		return 0
	}
	line, err := strconv.Atoi(words[2])
	if err != nil {
		return 0
	}
	if document, err := strconv.Atoi(words[1]); err == nil && document > 0 && document <= len(parts) {
		line += parts[document-1].Before
	}
	return line
}
