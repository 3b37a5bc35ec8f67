package tosca

import (
	"io/fs"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// CustomTypes is the URL of the public definition of the supported type. An import
// of it is answered by the type that is built in.
const CustomTypes = "https://raw.githubusercontent.com/grycap/ec3/tosca/tosca/custom_types.yaml"

// Limits of a translation. Those of texts and of their depth are [manifest.MaxBytes],
// for the template and its imports together as for all that they become, and
// [manifest.MaxDepth].
const (
	maxImports      = 20 // files
	maxImportDepth  = 10
	maxSteps        = 100_000 // parts of texts that are put together
	maxReferences   = 100     // get_property that leads to get_property
	maxArchiveBytes = 16 << 20
	maxEntries      = 1000 // of an archive
)

// Translate gives the manifests of a template, in the order of its node templates.
// A template that stands alone imports nothing but [CustomTypes].
func Translate(template []byte) ([]any, error) {
	open := func(string) ([]byte, error) { return template, nil }
	t := newTranslation(open)
	t.alone = true
	return t.translate("")
}

// TranslateArchive translates the template of an archive (CSAR).
func TranslateArchive(archive []byte) ([]any, error) {
	b, err := openArchive(archive)
	if err != nil {
		return nil, err
	}
	return b.translate()
}

// TranslateFS translates the template of an archive that is unpacked. If it is a
// folder that somebody else fills, give that of an [os.Root], which no symbolic link
// leaves.
func TranslateFS(fsys fs.FS) ([]any, error) {
	b, err := openFS(fsys)
	if err != nil {
		return nil, err
	}
	return b.translate()
}

// TranslateFrom translates a template that open gives for the name of the entry, a
// path as [fs.ValidPath] has them. Open is asked for imports by such paths too, which
// are relative to what the entry is relative to: for the entry a/b.yaml, and its
// import ../c.yaml, by c.yaml. It should not give more than it must: texts are
// looked at up to [manifest.MaxBytes]. After its first error it is not asked again,
// and [errors.Is] finds that error in the one of TranslateFrom.
func TranslateFrom(entry string, open func(name string) ([]byte, error)) ([]any, error) {
	if !fs.ValidPath(entry) {
		return nil, &Error{Message: "the name of the template, " + quote(entry) + ", is no relative path"}
	}
	return newTranslation(open).translate(entry)
}

// translation is what is known of one template.
type translation struct {
	open func(name string) ([]byte, error)
	// alone: the template has no files beside it.
	alone bool
	// bare: the template lies in an archive without metadata.
	bare bool

	// left is how much may still be read.
	left    int
	read    map[string]bool
	types   map[string]*place
	inputs  map[string]*place // their values
	nodes   map[string]*node
	ordered []*node
	// gaveUp: a file could not be read, so that no further one is asked for.
	gaveUp bool
	mistakes
}

func newTranslation(open func(string) ([]byte, error)) *translation {
	return &translation{
		open:   open,
		left:   manifest.MaxBytes,
		read:   map[string]bool{},
		types:  map[string]*place{},
		inputs: map[string]*place{},
		nodes:  map[string]*node{},
	}
}

// translate tells all mistakes of the template, and only if there are none those of
// what becomes of it.
func (t *translation) translate(entry string) ([]any, error) {
	template, err := t.readFile(entry)
	if err != nil {
		return nil, err
	}
	t.checkTemplate(template)
	t.readTypes(template, []string{entry})
	if !t.gaveUp { // or all that the types say would be missing
		t.readTopology(template)
	}
	if err := t.err(); err != nil {
		return nil, err
	}
	return t.resources()
}
