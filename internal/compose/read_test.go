package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// write writes files below a new folder, and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return folder
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

func summary(objects []Object) []string {
	var all []string
	for _, object := range objects {
		all = append(all, filepath.Base(object.File)+strings.TrimPrefix(object.Place(), object.File)+" "+object.Name)
	}
	return all
}

func TestFilesAndFoldersAreReadAsKubectlReadsThem(t *testing.T) {
	folder := write(t, map[string]string{
		"b.yaml":     "# first\n---\n" + configMap("b1") + "---\n---\n# nothing\n---\n" + configMap("b2"),
		"a.json":     `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`,
		"notes.txt":  "this is no manifest",
		"sub/c.yml":  configMap("c"),
		"sub/d.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: d1}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: d2}}\n",
	})
	for _, c := range []struct {
		name      string
		names     []string
		recursive bool
		want      []string
	}{
		{"a folder", []string{folder}, false, []string{"a.json:1 a", "b.yaml:3 b1", "b.yaml:10 b2"}},
		{"a folder and those in it", []string{folder}, true, []string{"a.json:1 a", "b.yaml:3 b1", "b.yaml:10 b2", "c.yml:1 c", "d.yaml:1 d1", "d.yaml:1 d2"}},
		{"a file, and the input", []string{filepath.Join(folder, "sub", "c.yml"), "-"}, false, []string{"c.yml:1 c", "stdin:1 e"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects, err := Read(strings.NewReader(configMap("e")), c.names, c.recursive)
			kit.Must(t, err)
			check.Equal(t, "objects", c.want, summary(objects))
		})
	}
}

// PowerShell's > writes UTF-16, with a byte order mark. Windows PowerShell writes the low byte first.
func TestFilesOfWindowsAreRead(t *testing.T) {
	text := "# schön 😀\r\n" + configMap("a") + "---\r\n" + configMap("b")
	encoded := func(order unicode.Endianness) string {
		encoded, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
		kit.Must(t, err)
		return encoded
	}
	for name, input := range map[string]string{
		"UTF-16, the low byte first": encoded(unicode.LittleEndian), "UTF-16, the high byte first": encoded(unicode.BigEndian),
		"UTF-8 with a byte order mark": "\ufeff" + text, "UTF-8": text,
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, map[string]string{"a.yaml": input})
			objects, err := Read(strings.NewReader(input), []string{folder, "-"}, false)
			kit.Must(t, err)
			check.Equal(t, "objects", []string{"a.yaml:2 a", "a.yaml:6 b", "stdin:2 a", "stdin:6 b"}, summary(objects))
			if !strings.Contains(string(objects[0].Text), "# schön 😀\r\n") {
				t.Errorf("the text is another one: %q", objects[0].Text)
			}
		})
	}
}

func TestAliasesAreWrittenOut(t *testing.T) {
	objects, err := objectsIn("a", []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  one: &one yes-1 # stays
  two: *one
base: &base {x: "1", y1: "1"}
others: &others [*base, {z: "3", x: "9"}]
merged: {<<: *base, y1: "2"}
all: {<<: *others, y1: "5"}
`))
	kit.Must(t, err)
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		"data":   map[string]any{"one": "yes-1", "two": "yes-1"},
		"base":   map[string]any{"x": "1", "y1": "1"},
		"others": []any{map[string]any{"x": "1", "y1": "1"}, map[string]any{"z": "3", "x": "9"}},
		"merged": map[string]any{"x": "1", "y1": "2"},
		"all":    map[string]any{"x": "1", "y1": "5", "z": "3"},
	}
	check.Equal(t, "object", want, objects[0].Value)
	if text := string(objects[0].Text); !strings.Contains(text, "# stays") {
		t.Errorf("the comment is lost:\n%s", text)
	}
}

func TestAnErrorNamesTheLineAndNoValue(t *testing.T) {
	bomb := strings.Builder{}
	bomb.WriteString("a0: &a0 [secret, secret]\n")
	for i := 1; i < 60; i++ {
		bomb.WriteString(strings.NewReplacer("N", string(rune('0'+i%10))+"x"+strings.Repeat("i", i), "M", string(rune('0'+(i-1)%10))+"x"+strings.Repeat("i", i-1)).Replace("aN: &aN [*aM, *aM]\n"))
	}
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "a: secret\n b: [\n", "f:2: parse YAML: "},
		{"a duplicate key", configMap("a") + "---\n" + configMap("b") + "kind: secret\n", "f:8: parse YAML: "},
		{"an alias that contains itself", "a: &a [*a]\n", "f:1: nested deeper than 64: write it flatter"},
		{"no object to merge", "a: &a secret\nb: {<<: *a}\n", "f:"},
		{"aliases of aliases", strings.Replace(bomb.String(), "&a1xi [*a0x, *a0x]", "&a1xi [*a0, *a0]", 1), "f:"},
		{"no name", "\n---\napiVersion: v1\nkind: ConfigMap\n", "f:3: the resource lacks metadata.name"},
		{"no object", "secret", "f:1: the document is no object: it needs apiVersion, kind and metadata.name"},
		{"a large document", configMap("a") + "# " + strings.Repeat("secret ", manifest.MaxBytes/7), "f:1: the text has 4194355 bytes; the maximum is 4194304: split it"},
		{"a second document on the line of its separator", configMap("a") + "--- {secret: a}\n", "f:4: a further document must begin with a line"},
		{"a long number", configMap("a") + "data: {a: 99999999999999999999}\n", "f:4: an integer has more digits than 64 bits hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := objectsIn("f", []byte(c.text))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

func TestWhatCannotBeReadSaysWhatToDo(t *testing.T) {
	for name, want := range map[string]string{
		"https://example.org/a.yaml":            "curl URL | kubectl krake create",
		write(t, map[string]string{"a.md": ""}): "-R also reads the folders in it",
		"missing.yaml":                          "missing.yaml",
	} {
		_, err := Read(nil, []string{name}, false)
		check.Fails(t, name, err, want)
	}
}

func TestAKustomizationIsBuilt(t *testing.T) {
	folder := write(t, map[string]string{"kustomization.yaml": "namePrefix: my-\nresources: [a.yaml]\n", "a.yaml": configMap("a")})
	objects, err := Kustomize(folder)
	kit.Must(t, err)
	check.Equal(t, "objects", []string{filepath.Base(folder) + " my-a"}, summary(objects))
	if _, err := Kustomize(t.TempDir()); err == nil {
		t.Error("want an error for a folder without a kustomization")
	}
}

// Webhook and agent read each text, as the one object that it was made of.
func FuzzObjects(f *testing.F) {
	for _, seed := range []string{
		configMap("a"), "a: &a [*a]", "a: &a {b: 1}\nc: {<<: *a}", "- {apiVersion: v1, kind: A, metadata: {name: a}}",
		`{"apiVersion":"v1","kind":"AList","items":[{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}]}`,
		"--- # a\n" + configMap("a") + "--- {b: c}\n", "? [a]\n: &b {*b : c}", "a: !!binary b", "<<: &a [*a, {b: c}]",
		"apiVersion: v1\nkind: A\nmetadata: &m {name: a, b: yes, c: 0x1F, d: 2001-01-01, e: 1_000, f: ~}\nspec: *m\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := objectsIn("f", text)
		if err != nil {
			return
		}
		for _, object := range objects {
			values, err := manifest.Decode(object.Text)
			if len(object.Text) > manifest.MaxBytes {
				continue
			}
			kit.Must(t, err)
			check.Equal(t, "what the webhook reads", []any{object.Value}, values)
		}
	})
}

// A List that is larger than a manifest becomes its items, each at its line. A single object of that size
// is refused.
func TestAListMayBeLargerThanAManifest(t *testing.T) {
	value := strings.Repeat("x", manifest.MaxBytes*2/5)
	item := func(name string) string {
		return "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: " + name + "}\n  data:\n    value: " + value + "\n"
	}
	list := "apiVersion: v1\nkind: List\nitems:\n" + item("a") + item("b") + item("c")
	asJSON, err := yaml.YAMLToJSON([]byte(list))
	kit.Must(t, err)
	shared := "apiVersion: v1\nkind: ConfigMapList\nitems:\n" + item("a") + "- &b {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {value: " + value[:maxAliases/2] + "}}\n- <<: *b\n  metadata: {name: c}\n" + item("d") + item("e")
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"YAML":       {"# before\n---\n" + list, []string{"stdin:6 a", "stdin:11 b", "stdin:16 c"}},
		"JSON":       {string(asJSON), []string{"stdin:1 a", "stdin:1 b", "stdin:1 c"}},
		"merge keys": {shared, []string{"stdin:4 a", "stdin:9 b", "stdin:10 c", "stdin:12 d", "stdin:17 e"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Read(strings.NewReader(c.text), []string{"-"}, false)
			kit.Must(t, err)
			check.Equal(t, "objects", c.want, summary(objects))
			for _, object := range objects {
				if decoded, err := manifest.Decode(object.Text); err != nil || len(decoded) != 1 || !strings.Contains(string(object.Text), value[:maxAliases/2]) {
					t.Errorf("the text of %s is another one: %v", object.Name, err)
				}
			}
		})
	}
	bomb := strings.Builder{}
	bomb.WriteString("kind: List\nx: &x " + value + "\nitems:\n")
	for range 50 {
		bomb.WriteString("- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: *x}}\n")
	}
	bomb.WriteString("# " + strings.Repeat("y", manifest.MaxBytes*4/5) + "\n")
	for name, c := range map[string]struct{ text, want string }{
		"one object":     {configMap("a") + "data: {value: " + strings.Repeat(value, 3) + "}\n", "stdin:1: the text has 503"},
		"a mistake":      {list + "- {apiVersion: v1, kind: ConfigMap}\n", "stdin:19: "},
		"aliases of one": {configMap("a") + "data: {a: &a " + value + ", b: *a, c: *a}\n", "the aliases expand to more than "},
		"aliases":        {bomb.String(), "the aliases expand to more than "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.text), []string{"-"}, false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v, want %s", err, c.want)
			}
		})
	}
}

func part(text, observerSchema string) Part {
	return Part{Object: Object{Text: []byte(text)}, Schema: []byte(observerSchema)}
}

func TestObjectsAreSplitInTheirOrder(t *testing.T) {
	var parts []Part
	for range 5 {
		parts = append(parts, part("12345", ""))
	}
	large := part(strings.Repeat("x", 100), "")
	for _, c := range []struct {
		name  string
		parts []Part
		most  Limits
		want  []int
	}{
		{"none", nil, Limits{2, 100, 100}, nil},
		{"by number", parts, Limits{2, 1000, 0}, []int{2, 2, 1}},
		{"by size, with the separators", parts, Limits{100, 2 * (5 + len(separator)), 0}, []int{2, 2, 1}},
		{"one byte less", parts, Limits{100, 2*(5+len(separator)) - 1, 0}, []int{1, 1, 1, 1, 1}},
		{"observer schemas", []Part{part("12345", "12345"), part("12345", ""), part("12345", "12345")}, Limits{100, 100, 2*(5+len(separator)) - 1}, []int{2, 1}},
		{"too large by itself", []Part{parts[0], large, parts[0]}, Limits{100, 20, 0}, []int{1, 1, 1}},
	} {
		var got []int
		for _, group := range Split(c.parts, c.most) {
			got = append(got, len(group))
			if manifest, observerSchema := Spec(group); len(group) > 1 && (len(manifest) > c.most.Manifest || len(observerSchema) > c.most.Schemas) {
				t.Errorf("%s: a manifest of %d bytes, and observer schemas of %d", c.name, len(manifest), len(observerSchema))
			}
		}
		check.Equal(t, c.name, c.want, got)
	}
}

func TestDocumentsAreSeparated(t *testing.T) {
	manifest, observerSchema := Spec([]Part{part("\na: b\n\n", ""), part("c: d", "e: f\n"), part("g: h\n", "i: j\n")})
	check.Equal(t, "manifest", "a: b\n---\nc: d\n---\ng: h\n", manifest)
	check.Equal(t, "observer schemas", "e: f\n---\ni: j\n", observerSchema)
}
