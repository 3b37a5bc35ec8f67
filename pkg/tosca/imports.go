package tosca

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// CustomTypes is the URL of the public definition of the supported type. An import of
// it is never fetched: the type is built in.
const CustomTypes = "https://raw.githubusercontent.com/grycap/ec3/tosca/tosca/custom_types.yaml"

const (
	maxImports     = 20 // files
	maxImportDepth = 10
)

// readTypes reads the types of a file and of its imports. The importing file overrides
// the types that it imports. The chain of file names ends with this file.
func (r *reader) readTypes(file *place, chain []string) {
	r.readImports(file.field("imports"), chain)
	for _, section := range []string{"node_types", "data_types"} {
		maps.Insert(r.types, r.mapping(file, section).fields())
	}
}

func (r *reader) readImports(imports *place, chain []string) {
	switch {
	case imports == nil:
		return
	case len(imports.Items) == 0: // also if it is no list
		r.add(imports.errorf("a list of files is wanted: leave imports out if there are none"))
		return
	}
	names := map[string]bool{}
	for i := range imports.Items {
		if reference := r.importOf(imports.item(i), names); reference != nil {
			r.readImport(reference, chain)
		}
	}
}

// importOf returns the place where an import names its file, or nil. The forms are:
// FILE, NAME: FILE, and NAME: {file: FILE}.
func (r *reader) importOf(p *place, names map[string]bool) *place {
	if len(p.Fields) == 1 {
		name := p.Fields[0].Name
		if p = p.child(p.Fields[0]); names[name] && name != "file" {
			r.add(p.errorf("a second import of this name: take another one"))
			return nil
		}
		names[name] = true
		if len(p.Fields) == 1 && p.Fields[0].Name == "file" {
			p = p.child(p.Fields[0])
		}
	}
	if p.text() == "" {
		r.add(p.errorf("%s is no import: write FILE, or NAME: FILE", kindOf(p.Value)))
		return nil
	}
	return p
}

// readImport reads the types of the file that a reference names.
func (r *reader) readImport(reference *place, chain []string) {
	if reference.text() == CustomTypes {
		return // an undefined type is the built-in one
	}
	name, problem := resolve(chain[len(chain)-1], reference.text())
	switch {
	case r.alone:
		r.add(reference.errorf("a template that stands alone imports nothing: write the types into it, or leave the import out (%s is built in), or use an archive (CSAR)", kubernetesObject))
	case problem != "":
		r.add(reference.errorf("%s", problem))
	case slices.Contains(chain, name):
		r.add(reference.errorf("%s imports itself, by way of %d files: take one of the imports out", printable(name), len(chain)-slices.Index(chain, name)))
	case r.read[name]:
	case len(r.read) > maxImports:
		r.add(reference.errorf("more than %d imported files", maxImports))
	case len(chain) > maxImportDepth:
		r.add(reference.errorf("imports of imports, more than %d deep", maxImportDepth))
	case r.unreadable:
	default:
		file, err := r.readFile(name)
		if err != nil {
			r.unreadable = true
			r.add(&Error{File: reference.file, Line: reference.line, Path: reference.path(), Message: "import " + err.Error(), cause: err})
			return
		}
		r.readTypes(file, append(slices.Clip(chain), name))
	}
}

// scheme matches the beginning of a URL, and of a path with a drive.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// resolve returns the path of a file that another file names, or the problem with it.
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
		return "", "the path leads out of the files beside the template: write one within them"
	}
	return name, ""
}

func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
