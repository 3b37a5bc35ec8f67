package mutate_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// large is a definition-like manifest: more text than a plain one may have, and few values.
func large(bytes int) string {
	line := "  a: " + strings.Repeat("a description that repeats itself. ", 30) + "\n"
	var b strings.Builder
	b.WriteString("apiVersion: example.com/v1\nkind: Song\nmetadata: {name: large}\nspec:\n")
	for i := 0; b.Len()+len(line)+10 < bytes; i++ {
		b.WriteString(strings.Replace(line, "a", "key"+string(rune('a'+i%26))+strings.Repeat("x", i/26), 1))
	}
	return b.String()
}

// A compressed manifest has the same desired state as a plain one, and the same observer schema.
func TestCompressedManifest(t *testing.T) {
	plain := submitted()
	plain.Data[application.ManifestKey], plain.Data[application.ObserverSchemaKey] = large(100_000), ""
	compressed := plain.DeepCopy()
	delete(compressed.Data, application.ManifestKey)
	compressed.BinaryData = map[string][]byte{application.ManifestKey: zipped(t, plain.Data[application.ManifestKey])}
	prepareCreate(t, plain)
	prepareCreate(t, compressed)
	for _, key := range []string{application.MangledSchemaKey, application.LastAppliedKey} {
		check.Equal(t, key, plain.Data[key]+string(plain.BinaryData[key]), compressed.Data[key]+string(compressed.BinaryData[key]))
	}
	check.Equal(t, "the last applied manifest is compressed", true, len(compressed.BinaryData[application.LastAppliedKey]) > 0)

	whole := submitted()
	whole.Data[application.ManifestKey], whole.Data[application.ObserverSchemaKey] = large(4_000_000), ""
	check.Must(t, application.CompressManifest(whole))
	prepareCreate(t, whole)
	size := 0
	for _, value := range whole.BinaryData {
		size += len(value)
	}
	if _, isText := whole.Data[application.ManifestKey]; isText || size > 1<<20 {
		t.Errorf("4 MB are stored as %d bytes, as a text: %t", size, isText)
	}
}

// A small manifest stays a text, which everybody can read.
func TestCompressManifestOnlyIfLarge(t *testing.T) {
	cm := submitted()
	check.Must(t, application.CompressManifest(cm))
	check.Equal(t, "binary data", map[string][]byte(nil), cm.BinaryData)
	check.Equal(t, "manifest", song().Manifest, cm.Data[application.ManifestKey])
}

// What cannot be expanded, or expands too far, is refused with the reason.
func TestCompressedManifestThatIsRefused(t *testing.T) {
	whole := zipped(t, strings.Repeat("# hunter2\n", manifest.MaxBytes))
	for name, c := range map[string]struct {
		binary []byte
		want   string
	}{
		"a bomb":          {whole, "data.spec.manifest: Invalid value: the compressed text cannot be read: larger than 4194304 bytes"},
		"the half of it":  {whole[:len(whole)/2], "data.spec.manifest: Invalid value: the compressed text cannot be read: "},
		"its first bytes": {whole[:2], "data.spec.manifest: Invalid value: the compressed text cannot be read: "},
		"no gzip":         {[]byte("\xff\xfea\x00"), "binaryData.spec.manifest: Forbidden: kubectl puts a file there whose text is not UTF-8"},
		"a mistake in it": {zipped(t, "a: b: c"), "data.spec.manifest: Invalid value: document 1: parse YAML: "},
	} {
		t.Run(name, func(t *testing.T) {
			cm := submitted()
			delete(cm.Data, application.ManifestKey)
			delete(cm.Data, application.ObserverSchemaKey)
			cm.BinaryData = map[string][]byte{application.ManifestKey: c.binary}
			refusals := mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate()
			check.Fails(t, "refusal", refusals, c.want)
			check.Equal(t, check.Message(refusals)+": it repeats the text", false, strings.Contains(check.Message(refusals), "hunter2"))
		})
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	check.Must(t, err)
	check.Must(t, w.Close())
	return b.Bytes()
}
