package tosca

import "io/fs"

// MaxBytes bounds a template with its imports, and what it is translated to.
const MaxBytes = 256 << 10

// Translate returns the manifests of a template in the order of its node templates. A
// template that stands alone imports nothing but [CustomTypes].
func Translate(template []byte) ([]any, error) {
	r := newReader(func(string) ([]byte, error) { return template, nil })
	r.alone = true
	return translate(r, "")
}

// TranslateArchive translates the template of an archive (CSAR).
func TranslateArchive(text []byte) ([]any, error) {
	files, err := openArchive(text)
	if err != nil {
		return nil, err
	}
	name, bare, err := files.template()
	if err != nil {
		return nil, err
	}
	r := newReader(files.read)
	r.bare = bare
	return translate(r, name)
}

// TranslateFrom translates the template that open returns for the name of the entry, a
// path for which [fs.ValidPath] holds. It asks open for imports by paths that start
// where the path of the entry starts: c.yaml, for the import ../c.yaml of a/b.yaml.
// Open need not return more than [MaxBytes] of a text. TranslateFrom stops to
// ask after the first error of open, and [errors.Is] finds it in the returned error.
func TranslateFrom(entry string, open func(name string) ([]byte, error)) ([]any, error) {
	if !fs.ValidPath(entry) {
		return nil, &Error{Message: "the name of the template, " + quote(entry) + ", is no relative path"}
	}
	return translate(newReader(open), entry)
}

// translate returns the mistakes of the template. Only a template without mistakes is
// evaluated, and may have the mistakes of its resources.
func translate(r *reader, entry string) ([]any, error) {
	template, err := r.readFile(entry)
	if err != nil {
		return nil, err
	}
	r.checkTemplate(template)
	r.readTypes(template, []string{entry})
	if !r.unreadable { // or every property that an unread type declares would be a mistake
		r.readTopology(template)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return evaluate(r)
}
