package tosca

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// readTypes reads the types of a file and of its imports, and of two by the same
// name keeps the one of the importing file. The chain leads to the file.
func (t *translation) readTypes(file *place, chain []string) {
	t.readImports(file.field("imports"), chain)
	for _, section := range []string{"node_types", "data_types"} {
		types := t.mapping(file, section)
		if types == nil {
			continue
		}
		for _, field := range types.Fields {
			t.types[field.Name] = types.child(field)
		}
	}
}

func (t *translation) readImports(imports *place, chain []string) {
	switch {
	case imports == nil:
		return
	case len(imports.Items) == 0: // of what is no list, too
		t.add(imports.errorf("a list of files is wanted: leave imports out if there are none"))
		return
	}
	names := map[string]bool{}
	for i := range imports.Items {
		if name, wanted := t.importOf(imports.item(i), names); wanted != nil {
			t.readImport(name, wanted, chain)
		}
	}
}

// importOf gives the file that an import names, and the place where it is named. The
// forms are: FILE, NAME: FILE, and NAME: {file: FILE}.
func (t *translation) importOf(p *place, names map[string]bool) (string, *place) {
	if p.isMapping() && len(p.Fields) == 1 {
		name := p.Fields[0].Name
		if p = p.child(p.Fields[0]); names[name] && name != "file" {
			t.add(p.errorf("a second import of this name: take another one"))
			return "", nil
		}
		names[name] = true
		if p.isMapping() && len(p.Fields) == 1 && p.Fields[0].Name == "file" {
			p = p.child(p.Fields[0])
		}
	}
	if p.text() == "" {
		t.add(p.errorf("%s is no import: write FILE, or NAME: FILE", kindOf(p.Value)))
		return "", nil
	}
	return p.text(), p
}

// readImport reads the types of a file that is wanted at a place.
func (t *translation) readImport(reference string, wanted *place, chain []string) {
	if reference == CustomTypes {
		return // a type that nobody defines is the built-in one
	}
	name, problem := resolve(chain[len(chain)-1], reference)
	switch {
	case t.alone:
		t.add(wanted.errorf("a template that stands alone imports nothing: write the types into it, or leave the import out (%s is built in), or use an archive (CSAR)", kubernetesObject))
	case problem != "":
		t.add(wanted.errorf("%s", problem))
	case slices.Contains(chain, name):
		t.add(wanted.errorf("%s imports itself, by way of %d files: take one of the imports out", printable(name), len(chain)-slices.Index(chain, name)))
	case t.read[name]:
	case len(t.read) > maxImports:
		t.add(wanted.errorf("more than %d imported files", maxImports))
	case len(chain) > maxImportDepth:
		t.add(wanted.errorf("imports of imports, more than %d deep", maxImportDepth))
	default:
		t.readImported(name, wanted, chain)
	}
}

func (t *translation) readImported(name string, wanted *place, chain []string) {
	if t.gaveUp {
		return
	}
	file, err := t.readFile(name)
	if err != nil {
		t.gaveUp = true
		t.add(wanted.because(err))
		return
	}
	t.readTypes(file, append(slices.Clip(chain), name))
}

// because tells of an import what is wrong with the file.
func (p *place) because(err error) error {
	return &Error{File: p.file, Line: p.line, Path: p.path(), Message: "import " + err.Error(), cause: err}
}

// scheme is the beginning of a URL, and of a path on another system.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// resolve gives the path of a file that another one names, or what is wrong with it.
func resolve(from, reference string) (name, problem string) {
	switch {
	case strings.HasPrefix(reference, "//") || scheme.MatchString(reference):
		return "", "a URL other than " + CustomTypes + " is not followed: put the file beside the one that imports it"
	case strings.HasPrefix(reference, "/"), strings.Contains(reference, `\`):
		return "", "the path is absolute, or has a backslash: write one that is relative to this file, with /"
	case hasControls(reference):
		return "", "the path has control characters"
	}
	name = path.Join(path.Dir(from), reference)
	if !fs.ValidPath(name) || name == "." {
		return "", "the path leads out of what there is beside the template: write one within"
	}
	return name, ""
}

func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
