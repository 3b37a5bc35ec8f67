package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// fragment is a document of a text, with the number of lines before it.
type fragment struct {
	text   []byte
	before int
	// tree is nil if the document cannot be read.
	tree *manifest.Tree
}

// fragments splits a text as [manifest.Decode] does.
func fragments(text []byte) []fragment {
	found := []fragment{{}}
	lines := 0
	for line := range bytes.Lines(text) {
		lines++
		current := &found[len(found)-1]
		if bytes.HasPrefix(line, []byte("---")) && len(current.text) > 0 {
			found = append(found, fragment{before: lines})
		} else {
			current.text = append(current.text, line...)
		}
	}
	found = slices.DeleteFunc(found, func(f fragment) bool { return len(f.text) == 0 })
	for i := range found {
		if tree, err := manifest.DecodeTree(found[i].text); err == nil {
			found[i].tree = tree
		}
	}
	return found
}

// located is a value of a text, and the number of lines before its document.
type located struct {
	*manifest.Tree

	before int
}

func (l located) line() int { return l.before + l.Line }

// resourcesIn returns the resources of a text, up to the first document that cannot be
// read. A document may be a list.
func resourcesIn(parts []fragment) []located {
	var resources []located
	for _, part := range parts {
		switch {
		case part.tree == nil:
			return resources
		case part.tree.Items != nil:
			for _, item := range part.tree.Items {
				resources = append(resources, located{item, part.before})
			}
		case part.tree.Value != nil:
			resources = append(resources, located{part.tree, part.before})
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
func placesIn(file string, document fragment) places {
	p := places{file: file, root: located{document.tree, document.before}, parts: map[string]part{}}
	if document.tree == nil {
		return p
	}
	lines := bytes.Split(document.text, []byte("\n"))
	for _, field := range document.tree.Fields {
		if field.Name != "data" {
			continue
		}
		for _, key := range field.Fields {
			text, ok := key.Value.(string)
			if ok && key.KeyLine <= len(lines) && literal.Match(bytes.TrimRight(lines[key.KeyLine-1], "\r")) {
				p.parts[key.Name] = part{file, document.before + key.KeyLine, text}
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
	parts := fragments([]byte(p.text))
	line := 0
	if path == "" {
		line = lineSaid(parts, says)
	} else {
		inner, rest, _ := strings.Cut(path[1:], "]")
		resources := resourcesIn(parts)
		if index, err := strconv.Atoi(inner); err == nil && index < len(resources) {
			line, _ = resources[index].find(rest)
		}
	}
	return fmt.Sprintf("%s:%d", p.file, max(1, p.before+line))
}

func lineSaid(parts []fragment, says string) int {
	words := said.FindStringSubmatch(says)
	if words == nil {
		return 0
	}
	line, err := strconv.Atoi(words[2])
	if err != nil {
		return 0
	}
	if document, err := strconv.Atoi(words[1]); err == nil && document > 0 && document <= len(parts) {
		line += parts[document-1].before
	}
	return line
}
