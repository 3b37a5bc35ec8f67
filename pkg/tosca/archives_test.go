package tosca_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/tosca"
	"github.com/krake-observer/krake-observer/test/check"
)

const (
	meta  = "TOSCA-Metadata/TOSCA.meta"
	newer = "tosca_definitions_version: tosca_simple_yaml_1_2\n"
)

// member is a file of an archive.
type member struct{ name, text string }

// entry returns the metadata that name a file.
func entry(name string) member {
	return member{meta, "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: somebody\nEntry-Definitions: " + name + "\n"}
}

// packed returns an archive.
func packed(tb testing.TB, members ...member) []byte {
	tb.Helper()
	return zipped(tb, members, func(w *zip.Writer, m member) (io.Writer, error) { return w.Create(m.name) })
}

// zipped returns an archive whose entries create starts.
func zipped(tb testing.TB, members []member, create func(w *zip.Writer, m member) (io.Writer, error)) []byte {
	tb.Helper()
	var text bytes.Buffer
	writer := zip.NewWriter(&text)
	for _, m := range members {
		file, err := create(writer, m)
		check.Must(tb, err)
		_, err = io.WriteString(file, m.text)
		check.Must(tb, err)
	}
	check.Must(tb, writer.Close())
	return text.Bytes()
}

type archive struct {
	why     string
	members []member
	// want are the manifests. err is a part of the error.
	want, err string
}

// archives returns well-formed archives, whatever their content.
func archives() []archive {
	good := version + nodes(spec(""))
	types := "node_types:\n  tosca.nodes.indigo.KubernetesObject:\n    properties: {spec: {type: string}, host: {type: string, default: here}}\n"
	asks := nodes(parts(`, "data: {k: ", {get_property: [SELF, host]}, "}"`))
	here := plain + "data: {k: here}\n"
	importing := func(imports string) string { return version + "imports: " + imports + "\n" + asks }
	files := func(entries ...member) []member { return append([]member{entry("definitions/entry.yaml")}, entries...) }
	return []archive{
		{"metadata name the template", []member{entry("entry.yaml"), {"entry.yaml", good}}, plain, ""},
		{"of either version", []member{entry("entry.yaml"), {"entry.yaml", newer + nodes(spec(""))}}, plain, ""},
		{"in a folder", files(member{"definitions/entry.yaml", good}), plain, ""},
		{"other templates at the top are not looked at", []member{entry("entry.yaml"), {"entry.yaml", good}, {"other.yaml", "no: template"}, {"third.yml", "a: b: c"}}, plain, ""},
		{"other keys of the metadata are not needed", []member{{meta, "Entry-Definitions: entry.yaml"}, {"entry.yaml", good}}, plain, ""},
		{"nor understood", []member{{meta, "Name: a\nContent-Type: x\n\nName: b\nContent-Type: {\n\nEntry-Definitions: 'entry.yaml' # here\r\n"}, {"entry.yaml", good}}, plain, ""},
		{"metadata may have a byte order mark", []member{{meta, "\ufeffEntry-Definitions: ./entry.yaml\r\n"}, {"entry.yaml", good}}, plain, ""},
		{"metadata without the template", []member{{meta, "CSAR-Version: 1.1\n"}, {"entry.yaml", good}}, "", "TOSCA-Metadata/TOSCA.meta: missing required field Entry-Definitions"},
		{"with an empty one", []member{{meta, "Entry-Definitions:\n"}, {"entry.yaml", good}}, "", "missing required field Entry-Definitions"},
		{"with two", []member{{meta, "Entry-Definitions: a.yaml\nEntry-Definitions: entry.yaml\n"}, {"entry.yaml", good}}, "", "Entry-Definitions is there twice"},
		{"without the blank that makes it a key", []member{{meta, "Entry-Definitions:entry.yaml\n"}, {"entry.yaml", good}}, "", "missing required field Entry-Definitions"},
		{"with one that is a list", []member{{meta, "Entry-Definitions: [entry.yaml]\n"}, {"entry.yaml", good}}, "", "missing required field Entry-Definitions"},
		{"with one that is no YAML", []member{{meta, "Entry-Definitions: 'entry.yaml\n"}, {"entry.yaml", good}}, "", "or is no text"},
		{"a template that is not there", []member{entry("other.yaml"), {"entry.yaml", good}}, "", "other.yaml: "},
		{"a template that is a folder", []member{entry("definitions"), {"definitions/entry.yaml", good}}, "", "definitions: "},
		{"a template beyond the archive", []member{entry("../entry.yaml"), {"entry.yaml", good}}, "", "TOSCA-Metadata/TOSCA.meta: Entry-Definitions: the path leads out"},
		{"a template on the agent's disk", []member{entry("/etc/passwd")}, "", "Entry-Definitions: the path is absolute"},
		{"a template by URL", []member{entry("https://example.org/a.yaml")}, "", "Entry-Definitions: a URL other than"},
		{"without metadata, the only template at the top", []member{{"entry.yaml", newer + nodes(spec(""))}, {"readme.txt", ""}, {"more/types.yaml", types}}, plain, ""},
		{"with the other extension", []member{{"entry.yml", newer + nodes(spec(""))}}, plain, ""},
		{"which must be of version 1.2", []member{{"entry.yaml", good}}, "", "entry.yaml:1: tosca_definitions_version: an archive of tosca_simple_yaml_1_0 needs the file TOSCA-Metadata/TOSCA.meta"},
		{"without metadata, no template at the top", []member{{"folder/entry.yaml", good}}, "", "should contain only one root level yaml file. Found 0"},
		{"without metadata, two", []member{{"entry.yaml", good}, {"other.yml", good}}, "", "should contain only one root level yaml file. Found 2"},
		{"nothing at all", nil, "", "Found 0"},
		{"a template that is no YAML", []member{entry("entry.yaml"), {"entry.yaml", "a: b: c"}}, "", "entry.yaml: parse YAML"},
		{"one that is no mapping", []member{entry("entry.yaml"), {"entry.yaml", "- a"}}, "", "entry.yaml:1: a list, and a mapping is wanted"},
		{"a mistake has its file", []member{entry("entry.yaml"), {"entry.yaml", version + nodes(`{spec: ""}`)}}, "", "entry.yaml:7: topology_template.node_templates.a.properties.spec: TOSCA node property"},

		{"an import is relative to its file", files(member{"definitions/entry.yaml", importing("[types/kube.yaml]")}, member{"definitions/types/kube.yaml", types}), here, ""},
		{"it may have a name", files(member{"definitions/entry.yaml", importing("[{kube: types/kube.yaml}]")}, member{"definitions/types/kube.yaml", types}), here, ""},
		{"or a mapping", files(member{"definitions/entry.yaml", importing("[{kube: {file: types/kube.yaml}}]")}, member{"definitions/types/kube.yaml", types}), here, ""},
		{"it may go up, within the archive", files(member{"definitions/entry.yaml", importing("[../types/kube.yaml]")}, member{"types/kube.yaml", types}), here, ""},
		{"an import of an import is relative to that", files(member{"definitions/entry.yaml", importing("[../types/all.yaml]")}, member{"types/all.yaml", "imports: [kube/kube.yaml]"}, member{"types/kube/kube.yaml", types}), here, ""},
		{"two may import the same file", files(member{"definitions/entry.yaml", importing("[a.yaml, b.yaml]")}, member{"definitions/a.yaml", "imports: [kube.yaml]"}, member{"definitions/b.yaml", "imports: [kube.yaml]"}, member{"definitions/kube.yaml", types}), here, ""},
		{"the importing file knows better", files(member{"definitions/entry.yaml", version + "imports: [kube.yaml]\n" + typed(", host: {type: string, default: there}") + asks}, member{"definitions/kube.yaml", types}), plain + "data: {k: there}\n", ""},
		{"so does the later import", files(member{"definitions/entry.yaml", importing("[kube.yaml, other.yaml]")}, member{"definitions/kube.yaml", types}, member{"definitions/other.yaml", strings.ReplaceAll(types, "here", "there")}), plain + "data: {k: there}\n", ""},
		{"the public definition is not in the way of one's own", files(member{"definitions/entry.yaml", importing("[kube.yaml, " + tosca.CustomTypes + "]")}, member{"definitions/kube.yaml", types}), here, ""},
		{"the version of an import does not matter", files(member{"definitions/entry.yaml", importing("[kube.yaml]")}, member{"definitions/kube.yaml", newer + types}), here, ""},
		{"a file that imports itself", files(member{"definitions/entry.yaml", importing("[entry.yaml]")}), "", "definitions/entry.yaml:2: imports[0]: definitions/entry.yaml imports itself"},
		{"by way of others", files(member{"definitions/entry.yaml", importing("[a.yaml]")}, member{"definitions/a.yaml", "imports: [b.yaml]"}, member{"definitions/b.yaml", "imports: [{x: ../definitions/a.yaml}]"}), "", "definitions/b.yaml:1: imports[0].x: definitions/a.yaml imports itself, by way of 2 files"},
		{"an import that is not there", files(member{"definitions/entry.yaml", importing("[kube.yaml]")}), "", "definitions/entry.yaml:2: imports[0]: import definitions/kube.yaml: "},
		{"an import beyond the archive", files(member{"definitions/entry.yaml", importing("[../../kube.yaml]")}), "", "imports[0]: the path leads out"},
		{"an absolute one", files(member{"definitions/entry.yaml", importing("[/etc/passwd]")}), "", "imports[0]: the path is absolute"},
		{"one with a backslash", files(member{"definitions/entry.yaml", importing(`['..\kube.yaml']`)}), "", "imports[0]: the path is absolute, or has a backslash"},
		{"one by URL", files(member{"definitions/entry.yaml", importing("['http://169.254.169.254/latest']")}), "", "imports[0]: a URL other than"},
		{"one without scheme", files(member{"definitions/entry.yaml", importing("['//example.org/a.yaml']")}), "", "imports[0]: a URL other than"},
		{"one from the agent's disk", files(member{"definitions/entry.yaml", importing("['FILE:///etc/passwd']")}), "", "imports[0]: a URL other than"},
		{"one with control characters", files(member{"definitions/entry.yaml", importing(`["a\0b"]`)}), "", "imports[0]: the path has control characters"},
		{"one that is no YAML", files(member{"definitions/entry.yaml", importing("[kube.yaml]")}, member{"definitions/kube.yaml", "a: b: c"}), "", "imports[0]: import definitions/kube.yaml: parse YAML"},
		{"one that is no mapping", files(member{"definitions/entry.yaml", importing("[kube.yaml]")}, member{"definitions/kube.yaml", "a"}), "", "imports[0]: import definitions/kube.yaml:1: a text, and a mapping is wanted"},
		{"imports of imports, too deep", deepImports(), "", "imports of imports, more than 10 deep"},
		{"too many imports", manyImports(), "", "imports[20]: more than 20 imported files"},
		{"imports that are long together", files(member{"definitions/entry.yaml", importing("[a.yaml, b.yaml]")}, member{"definitions/a.yaml", "description: " + strings.Repeat("x", 200000)}, member{"definitions/b.yaml", "description: " + strings.Repeat("x", 200000)}), "", "import definitions/b.yaml: the template and its imports have more than 262144 bytes"},
		{"a template that is a bomb", []member{entry("entry.yaml"), {"entry.yaml", good + "#" + strings.Repeat("x", 8<<20)}}, "", "entry.yaml: more than 262144 bytes"},
		{"metadata that are a bomb", []member{{meta, strings.Repeat("\n", 8<<20)}, {"entry.yaml", good}}, "", "TOSCA-Metadata/TOSCA.meta: more than 262144 bytes"},
		{"what nobody asks for may be large", []member{entry("entry.yaml"), {"entry.yaml", good}, {"manual.pdf", strings.Repeat("x", 8<<20)}}, plain, ""},
	}
}

func deepImports() []member {
	members := []member{entry("0.yaml"), {"0.yaml", version + "imports: [1.yaml]\n" + nodes(spec(""))}}
	for i := 1; i <= 11; i++ {
		members = append(members, member{fmt.Sprintf("%d.yaml", i), fmt.Sprintf("imports: [%d.yaml]\n", i+1)})
	}
	return members
}

func manyImports() []member {
	var imports []string
	members := []member{entry("entry.yaml")}
	for i := range 21 {
		name := fmt.Sprintf("types-%d.yaml", i)
		imports = append(imports, name)
		members = append(members, member{name, "node_types: {}\n"})
	}
	return append(members, member{"entry.yaml", version + "imports: [" + strings.Join(imports, ", ") + "]\n" + nodes(spec(""))})
}

func TestTranslateArchive(t *testing.T) {
	for _, test := range archives() {
		t.Run(test.why, func(t *testing.T) {
			got, err := tosca.TranslateArchive(packed(t, test.members...))
			variant{want: test.want, err: test.err}.check(t, got, err)
		})
	}
}

func TestTranslateFrom(t *testing.T) {
	types := "imports: [../more/base.yaml]\n" + typed(", host: {type: string, default: here}")
	offline := errors.New("no route to the host")
	tests := []struct {
		why, entry string
		files      map[string]string
		want       string // manifests
		err        string
		asked      []string
	}{
		{"imports are asked for by paths relative to what the template's is relative to", "x/y/a.yaml", map[string]string{
			"x/y/a.yaml": version + "imports: [../types/t.yaml]\n" + nodes(parts(`, "data: {k: ", {get_property: [SELF, host]}, "}"`)), "x/types/t.yaml": types, "x/more/base.yaml": "description: x"},
			plain + "data: {k: here}\n", "", []string{"x/y/a.yaml", "x/types/t.yaml", "x/more/base.yaml"}},
		{"the built-in type is not asked for", "a.yaml", map[string]string{"a.yaml": version + "imports: [" + tosca.CustomTypes + "]\n" + nodes(spec(""))}, plain, "", []string{"a.yaml"}},
		{"nor is anything beyond", "a.yaml", map[string]string{"a.yaml": version + "imports: [../b.yaml, 'https://example.org/b.yaml', /b.yaml]\n" + nodes(spec(""))}, "", "imports[0]: the path leads out", []string{"a.yaml"}},
		{"an import that is not there", "a.yaml", map[string]string{"a.yaml": version + "imports: [b.yaml, c.yaml]\n" + nodes(spec(""))}, "", "a.yaml:2: imports[0]: import b.yaml: read it: no route to the host", []string{"a.yaml", "b.yaml"}},
		{"a template that is not there", "a.yaml", nil, "", "a.yaml: read it: no route to the host", []string{"a.yaml"}},
		{"a name that is no path", "https://example.org/a.yaml", nil, "", `the name of the template, "https://example.org/a.yaml", is no relative path`, nil},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			var asked []string
			got, err := tosca.TranslateFrom(test.entry, func(name string) ([]byte, error) {
				asked = append(asked, name)
				if text, ok := test.files[name]; ok {
					return []byte(text), nil
				}
				return nil, offline
			})
			variant{want: test.want, err: test.err}.check(t, got, err)
			check.Equal(t, "what was asked for", test.asked, asked)
			check.Equal(t, "the cause is in the error", strings.Contains(test.err, "no route"), errors.Is(err, offline))
		})
	}
}

// crafted returns archives that no common tool creates.
func crafted(tb testing.TB) []craftedArchive {
	good := []member{entry("entry.yaml"), {"entry.yaml", version + nodes(spec(""))}}
	named := func(name string) []byte { return packed(tb, append(good, member{name, "x"})...) }
	header := func(change func(*zip.FileHeader)) []byte { return withHeader(tb, good, change) }
	// patched changes the header of the last entry in the central directory.
	patched := func(offset int, value ...byte) []byte {
		text := packed(tb, good...)
		copy(text[bytes.LastIndex(text, []byte("PK\x01\x02"))+offset:], value)
		return text
	}
	return []craftedArchive{
		{"a name that leads out", named("../../slip.txt"), "leads out of the archive"},
		{"in the middle", named("a/../../slip.txt"), "leads out of the archive"},
		{"a name that is the folder itself", named("./x"), "leads out of the archive"},
		{"an absolute name", named("/etc/passwd"), "/etc/passwd: the name is absolute"},
		{"backslashes", named(`..\..\slip.txt`), "the name has a backslash or a drive"},
		{"a drive", named("C:/slip.txt"), "the name has a backslash or a drive"},
		{"no name", named(""), "the name is absolute, or leads out"},
		{"a NUL in the name", named("a\x00.yaml"), "the name is no text"},
		{"a name that is no text", named("a\xff.yaml"), "the name is no text"},
		{"a file twice", named("entry.yaml"), "entry.yaml: two entries have this name"},
		{"a file and a folder of a name", packed(tb, append(good, member{"entry.yaml/", ""})...), "two entries have this name"},
		{"a symbolic link", header(func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }), "more.txt: the entry is a link or a device"},
		{"a device", header(func(h *zip.FileHeader) { h.SetMode(fs.ModeDevice) }), "more.txt: the entry is a link or a device"},
		{"a pipe", header(func(h *zip.FileHeader) { h.SetMode(fs.ModeNamedPipe) }), "more.txt: the entry is a link or a device"},
		{"a symbolic link that is a folder", header(func(h *zip.FileHeader) { h.Name = "more/"; h.SetMode(fs.ModeSymlink | 0o777) }), "the entry is a link or a device"},
		{"an encrypted entry", patched(8, 1, 0), "entry.yaml: the entry is encrypted"},
		{"another compression", patched(10, 12, 0), "entry.yaml: the entry is compressed by method 12"},
		{"a length that is too small", patched(24, 1, 0, 0, 0), "entry.yaml: the archive is damaged, or has wrong data about this file"},
		{"a length that is too large", patched(24, 0xff, 0xff, 0xff, 0x7f), "entry.yaml: the archive is damaged, or has wrong data about this file"},
		{"a compressed length that is too small", patched(20, 1, 0, 0, 0), "entry.yaml: the archive is damaged, or has wrong data about this file"},
		{"another checksum", patched(16, 1, 2, 3, 4), "entry.yaml: the archive is damaged, or has wrong data about this file"},
		{"an offset beyond the end", patched(42, 0xff, 0xff, 0xff, 0x7f), "entry.yaml: the archive is damaged, or has wrong data about this file"},
		{"more entries than are possible", packed(tb, make([]member, 1001)...), "the archive has 1001 entries; the maximum is 1000"},
		{"a million entries", manyEntries(1_000_000, 1_000_000%(1<<16)), "the maximum is 16777216"},
		{"very many entries", manyEntries(300_000, 300_000%(1<<16)), "the archive has 300000 entries, with those of archives in it: the maximum is 1000"},
		{"fewer entries than the end says", manyEntries(3, 900), "no valid zip archive"},
		{"a nested archive is not looked into", packed(tb, append(good, member{"inner.zip", string(packed(tb, member{"../slip", ""}))})...), ""},
		{"an archive in front of the archive", append(packed(tb, member{"other.yaml", "x"}), packed(tb, good...)...), ""},
		{"a bomb of which its header says three bytes", lyingBomb(tb, 8<<20), "entry.yaml: the archive is damaged, or has wrong data about this file"},
		{"half an archive", packed(tb, good...)[:200], "no valid zip archive"},
		{"an archive without its beginning", packed(tb, good...)[200:], "TOSCA-Metadata/TOSCA.meta: the archive is damaged"},
		{"a web page", []byte("<html><body>404</body></html>"), "no valid zip archive"},
		{"nothing", nil, "no valid zip archive"},
		{"an archive that is too large", make([]byte, 16<<20+1), "the archive has 16777217 bytes; the maximum is 16777216"},
	}
}

type craftedArchive struct {
	why  string
	text []byte
	err  string // or it becomes plain
}

func TestTranslateCraftedArchive(t *testing.T) {
	for _, test := range crafted(t) {
		t.Run(test.why, func(t *testing.T) {
			got, err := tosca.TranslateArchive(test.text)
			variant{want: plain, err: test.err}.check(t, got, err)
		})
	}
}

// withHeader adds a file with a changed header.
func withHeader(tb testing.TB, members []member, change func(*zip.FileHeader)) []byte {
	tb.Helper()
	return zipped(tb, append(members, member{"more.txt", ""}), func(w *zip.Writer, m member) (io.Writer, error) {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if m.name == "more.txt" {
			change(header)
		}
		return w.CreateHeader(header)
	})
}

// manyEntries returns a central directory of the shortest headers, with an end record that
// declares told entries.
func manyEntries(count uint32, told uint16) []byte {
	header := make([]byte, 46+1)
	copy(header, "PK\x01\x02")
	binary.LittleEndian.PutUint16(header[28:], 1) // the length of the name
	header[46] = 'a'
	directory := bytes.Repeat(header, int(count))
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], told)
	binary.LittleEndian.PutUint16(end[10:], told)
	binary.LittleEndian.PutUint32(end[12:], count*47)
	return append(directory, end...)
}

// bomb returns an archive whose template has this many equal bytes.
func bomb(tb testing.TB, length int) []byte {
	tb.Helper()
	return packed(tb, entry("entry.yaml"), member{"entry.yaml", strings.Repeat("#", length)})
}

// lyingBomb returns one that declares three bytes.
func lyingBomb(tb testing.TB, length int) []byte {
	tb.Helper()
	text := bomb(tb, length)
	header := text[bytes.LastIndex(text, []byte("PK\x01\x02")):]
	binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE([]byte("###")))
	binary.LittleEndian.PutUint32(header[24:], 3)
	return text
}

// No error contains unreadable input: it may be the value of a Secret.
func TestErrorsRepeatNoValues(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, properties := range []string{
		`{spec: "` + secret + `"}`, `{spec: [` + secret + `]}`, `{spec: {concat: ["a: ", {` + secret + `: 1, b: 2}]}}`,
		`{spec: "apiVersion: ` + secret + `"}`, `{spec: "a: *` + secret + `"}`, `{spec: "a: !!int ` + secret + `"}`, `{spec: "a: 'x' ` + secret + `"}`,
		`{spec: {get_property: [SELF, spec, ` + secret + `]}}`, `{spec: {get_input: ` + secret + `}}`, `{spec: {get_property: [` + secret + `, spec]}}`,
		`{spec: x, port: ` + secret + `}`, `{spec: "` + secret + `: b: c"}`,
	} {
		for _, topology := range []string{withInputs("{x: {type: integer, default: "+secret+"}}", properties), nodes(properties)} {
			_, err := tosca.Translate([]byte(version + typed(", port: {type: integer, required: false}") + topology))
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", topology, err)
			}
		}
	}
}

func TestErrorsAreShort(t *testing.T) {
	var keys strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&keys, "%s%d: x\n", strings.Repeat("k", 100), i)
	}
	_, err := tosca.Translate([]byte(version + keys.String() + nodes(spec(""))))
	if err == nil || len(err.Error()) > 10_000 || !strings.HasSuffix(err.Error(), "\nand 1990 more") {
		t.Errorf("%d bytes: %.20000s", len(err.Error()), err)
	}
	mistake := new(tosca.Error)
	if !errors.As(err, &mistake) || mistake.Line != 2 || !strings.HasPrefix(mistake.Message, "unknown field") {
		t.Errorf("the first mistake is %#v", mistake)
	}
}

// The result belongs to the caller: no two manifests share anything.
func TestManifestsAreApart(t *testing.T) {
	got, err := tosca.Translate([]byte(version + nodes(`{spec: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`, `{spec: {get_property: [a, spec]}}`)))
	check.Must(t, err)
	got[0].(map[string]any)["metadata"].(map[string]any)["name"] = "changed"
	id, err := manifest.Identify(got[1].(map[string]any))
	check.Must(t, err)
	check.Equal(t, "name", "a", id.Name)
}
