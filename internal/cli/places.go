package cli

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

// located is a value of a text, and the number of lines before its document.
type located struct {
	*manifest.Tree

	before int
}

func (l located) line() int { return l.before + l.Line }

// resourcesIn returns the resources of a text, up to the first document that cannot be
// read. A document may be a list.
func resourcesIn(parts []compose.Document) []located {
	var resources []located
	for _, part := range parts {
		switch {
		case part.Tree == nil:
			return resources
		case part.Tree.Items != nil:
			for _, item := range part.Tree.Items {
				resources = append(resources, located{item, part.Before})
			}
		case part.Tree.Value != nil:
			resources = append(resources, located{part.Tree, part.Before})
		}
	}
	return resources
}

// find follows a path in the form of admission, spec.ports[0].name or
// metadata.labels[a.b/c], as far as the text has it. It returns the line where the path ends.
func (l located) find(path string) (line int, all bool) {
	line = l.line()
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

// part is the text of one key of a spec, and the line where it begins.
type part struct {
	file   string
	before int
	text   string
	// objects are those of a manifest that was composed of files.
	objects []compose.Object
}

// places finds the fields of an Application in the user's files.
type places struct {
	file string
	// root is the ConfigMap; its tree is nil if no file has it.
	root located
	// parts are those whose lines are lines of a file.
	parts map[string]part
}

// literal matches the end of a line before a literal block.
var literal = regexp.MustCompile(`:\s*\|[0-9+-]*\s*(#.*)?$`)

// placesIn finds the parts of a ConfigMap that is a document of a file.
func placesIn(file string, document compose.Document) places {
	p := places{file: file, root: located{document.Tree, document.Before}, parts: map[string]part{}}
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
				p.parts[key.Name] = part{file: file, before: document.Before + key.KeyLine, text: text}
			}
		}
	}
	return p
}

// of returns the place of a path, as file:line, or the file if no more is known. The message
// about it (says) may name a line of the text.
func (p places) of(path, says string) string {
	for _, key := range application.SpecKeys() {
		rest, ok := strings.CutPrefix(path, "data."+key)
		in, known := p.parts[key]
		if ok && known && (rest == "" || rest[0] == '[') {
			return in.place(rest, says)
		}
	}
	if p.root.Tree == nil {
		return p.file
	}
	line, _ := p.root.find(path)
	return fmt.Sprintf("%s:%d", p.file, line)
}

// said is the line that an error of a parser names, in which document.
var said = regexp.MustCompile(`(?s)^(?:.*\bdocument (\d+): )?.*\bline (\d+)\b`)

func (p part) place(path, says string) string {
	index, rest := resourceAt(path)
	if index >= 0 && index < len(p.objects) {
		return placeIn(p.objects[index], rest)
	}
	if p.objects != nil {
		return p.file
	}
	parts := compose.Documents([]byte(p.text))
	line := 0
	if path == "" {
		line = lineSaid(parts, says)
	} else if resources := resourcesIn(parts); index >= 0 && index < len(resources) {
		line, _ = resources[index].find(rest)
	}
	return fmt.Sprintf("%s:%d", p.file, max(1, p.before+line))
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
	line, _ := located{object.Tree, object.Line - object.Tree.Line}.find(path)
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
