package watchjson

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/oddjson"
)

// If the parser accepts a text, the library decodes it to the same value. If the library
// refuses it, the parser does, too.
func FuzzParser(f *testing.F) {
	for _, text := range oddjson.Oddities() {
		f.Add([]byte(text))
	}
	f.Fuzz(checkParser)
}

func checkParser(t *testing.T, text []byte) {
	t.Helper()
	known := &NewDecoder().known
	got, err := readAll(known, text, (*parser).value)
	var want any
	wantErr := utiljson.Unmarshal(text, &want)
	if err == nil && (wantErr != nil || !reflect.DeepEqual(got, want)) {
		t.Errorf("read as %#v, want %#v (%v)", got, want, wantErr)
	}
	if _, skipErr := readAll(known, text, (*parser).skip); skipErr == nil && wantErr != nil && !oddjson.IsTooBig(wantErr) {
		t.Errorf("passed over, and the library says %v", wantErr)
	}
	if wantErr == nil && err != nil && !bytes.Contains(text, []byte(`{"a":[{"a":[{"a":[`)) && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < maxNesting {
		t.Errorf("not read, and the library reads %#v", want)
	}
}

// The same holds for randomly damaged texts. This test runs without fuzzing.
func TestDamagedTextsAreReadAsTheLibraryReadsThem(t *testing.T) {
	seeds := append(oddjson.Oddities(), oddjson.Deployment(7), song("2"), song("1"))
	random, tries := rand.New(rand.NewPCG(1, 2)), 20_000
	if testing.Short() {
		tries = 5_000
	}
	for range tries {
		text := oddjson.Damage(random, seeds[random.IntN(len(seeds))])
		checkParser(t, text)
		if t.Failed() {
			t.Fatalf("the text was %q", text)
		}
	}
}

func song(value string) string {
	return `{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", "labels": {"example.com/owned": "me"},
		"managedFields": [{"manager": "m"}]}, "data": {"a": "` + value + `", "b": 2}, "spec": {"replicas": 2}, "status": {"phase": "x"}}`
}

// Strings that any client may write are not interned without limit.
func TestFewStringsAreInterned(t *testing.T) {
	known := NewDecoder().known
	for i := range 3 * mostInterned {
		text := fmt.Sprintf(`{"k%d": "v%d", %q: %q}`, i, i, strings.Repeat("k", longestName+1+i%7), strings.Repeat("v", longestValue+1))
		_, err := readAll(&known, []byte(text), (*parser).value)
		kit.Must(t, err)
	}
	if len(known.names) != mostInterned || len(known.values) != mostInterned {
		t.Errorf("%d names and %d values are kept", len(known.names), len(known.values))
	}
}
