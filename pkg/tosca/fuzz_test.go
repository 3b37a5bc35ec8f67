package tosca_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/tosca"
	"github.com/krake-observer/krake-observer/test/check"
)

// largestSeed limits the corpus to small inputs: the limits have tests of their own.
const largestSeed = 4 << 10

// Any template leads to resources that all walkers accept, or to a readable error, and each
// time to the same. An agent repeats the translation of the webhook.
func FuzzTranslate(f *testing.F) {
	for _, test := range templates() {
		if len(test.template) <= largestSeed {
			f.Add([]byte(test.template))
		}
	}
	f.Fuzz(func(t *testing.T, template []byte) { obeysTheLaws(t, tosca.Translate, template) })
}

// The same holds for archives. Their declared sizes must be correct, too.
func FuzzTranslateArchive(f *testing.F) {
	for _, test := range archives() {
		if text := unsealed(f, test.members...); len(text) <= largestSeed {
			f.Add(text)
		}
	}
	for _, test := range crafted(f) {
		if len(test.text) <= largestSeed {
			f.Add(test.text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) { obeysTheLaws(t, tosca.TranslateArchive, text) })
}

// unsealed returns an archive of texts without compression and without a checksum, so that a
// fuzzer can change them in place.
func unsealed(tb testing.TB, members ...member) []byte {
	tb.Helper()
	return zipped(tb, members, func(w *zip.Writer, m member) (io.Writer, error) {
		size := uint64(len(m.text))
		return w.CreateRaw(&zip.FileHeader{Name: m.name, CompressedSize64: size, UncompressedSize64: size})
	})
}

func obeysTheLaws(t *testing.T, translate func([]byte) ([]any, error), text []byte) {
	first, err := translate(text)
	second, again := translate(text)
	if !reflect.DeepEqual(first, second) || check.Message(err) != check.Message(again) {
		t.Errorf("the second time it gives something else: %v, %v\n%v\n%v", err, again, first, second)
	}
	if err != nil {
		check.Equal(t, "a result beside the error", nil, first)
		if len(err.Error()) > 20<<10 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		return
	}
	if len(first) == 0 || len(first) > manifest.MaxResources || manifest.TooDeep(first[0]) {
		t.Errorf("%d resources", len(first))
	}
	for _, resource := range first {
		_, err := manifest.Identify(resource.(map[string]any))
		check.Fails(t, "identity", err, "")
	}
	published, err := json.Marshal(first)
	check.Must(t, err)
	// A translated manifest is published, and decoded again. Escapes for HTML and brackets are
	// not counted.
	read, err := manifest.Decode(published)
	if len(published) <= tosca.MaxBytes && (err != nil || !reflect.DeepEqual(read, first)) {
		t.Errorf("read again it is something else: %v\n%v\n%v", err, read, first)
	}
}
