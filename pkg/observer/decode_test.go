package observer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// oddities are texts at which readers of JSON part ways.
var oddities = []string{
	`{}`, `{"a": 1, "a": {"b": 2}, "a": [3]}`, `{"A": 1, "a": 2}`, `{"\u0061": 1, "a\u00e9\ud83d\ude00\ud800": "\n\/"}`,
	`{"a": [0, -0, 1.0, 1e3, 1E-3, 9223372036854775807, 9223372036854775808, -9223372036854775809, 1e400, 0.1, 12345678901234567890.5]}`,
	`{"a": null, "b": true, "c": false, "d": {}, "e": [], "f": ""}`, " {\t\"a\" :\r\n[ 1 , 2 ] } ", "{\"a\": \"\xff\"}", "{\"a\": \"\x01\"}",
	`{"a": 01}`, `{"a": 1.}`, `{"a": .5}`, `{"a": +1}`, `{"a": 1e}`, `{"a": nul}`, `{"a": tru}`, `{"a": "\x"}`, `{"a": "\u12g4"}`, `{"a"}`, `{"a":}`, `{"a": 1,}`, `{,}`,
	`{"a": [1,]}`, `{"a": [1 2]}`, `{"a": 1 "b": 2}`, `{"a": 1}}`, `{"a": 1} x`, `[1]`, `null`, `1`, `"a"`, ``, `{`, `{"a": "`, `{"a": "\`, `{"a": -}`, `{1: 2}`,
	`{"metadata": {"name": "x", "managedFields": [1], "managedFields": {"a": nonsense}}}`,
	`{"metadata": null, "metadata": {"name": "x"}, "spec": 1, "spec": {"replicas": 2}}`,
	`{"metadata": {"name": "x"}, "data": {"a": 1}, "data": null}`, `{"metadata": {"name": "x"}, "data": null, "data": {"a": "1"}}`,
	`{"metadata": "x", "status": [1], "spec": "y"}`, `{"items": [{"a": 1}], "kind": "L"}`,
	strings.Repeat(`{"a":[`, 600) + strings.Repeat(`]}`, 600),
}

// What the parser reads, the library reads to the same value; and what the library
// does not read, the parser does not either.
func FuzzParser(f *testing.F) {
	for _, text := range oddities {
		f.Add([]byte(text))
	}
	f.Fuzz(checkParser)
}

func checkParser(t *testing.T, text []byte) {
	t.Helper()
	words := newWords()
	got, err := read(words, text, (*parser).value)
	var want any
	wantErr := utiljson.Unmarshal(text, &want)
	if err == nil && (wantErr != nil || !reflect.DeepEqual(got, want)) {
		t.Errorf("read as %#v, want %#v (%v)", got, want, wantErr)
	}
	if _, skipErr := read(words, text, (*parser).skip); skipErr == nil && wantErr != nil && !tooBig(wantErr) {
		t.Errorf("passed over, and the library says %v", wantErr)
	}
	if wantErr == nil && err != nil && !bytes.Contains(text, []byte(`{"a":[{"a":[{"a":[`)) && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < maxNesting {
		t.Errorf("not read, and the library reads %#v", want)
	}
}

// tooBig is what the library says of a number that is no number of Go's: the text is
// JSON all the same.
func tooBig(err error) bool { return strings.Contains(err.Error(), "cannot unmarshal number") }

// looker are Observers of one object that has been there already.
func looker(t testing.TB, desired string, beside ...[]string) *Observers {
	t.Helper()
	o := New(t.Context(), Options{
		Now: func() time.Time { return time.Unix(0, 0) }, Logger: logr.Discard(), Summarised: []string{"spec", "status"},
		Summarise: func(live map[string]any) any { return fmt.Sprint(live["spec"], live["status"], live["kind"]) },
		OwnerOf: func(live map[string]any) (Owner, bool) {
			name := (&unstructured.Unstructured{Object: live}).GetLabels()[label]
			return Owner{Name: name}, name != ""
		},
	})
	if desired == "" {
		return o
	}
	observed, err := schema.Default(object(t, desired))
	kit.Must(t, err)
	for _, path := range beside {
		observed = observed.Observe(path...)
	}
	target := Target{Schema: observed, Marked: observed, Desired: manifest.Pack(object(t, desired)), Revision: "1"}
	target.Ref = manifest.Ref{ID: manifest.ID{APIVersion: "v1", Kind: "Song", Name: "x"}, Resource: configMaps}
	o.watched[keyOf(target)] = []*view{{owner: web, target: target}, {owner: other, target: target}}
	return o
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	kit.Must(t, utiljson.Unmarshal([]byte(text), &fields))
	return fields
}

// looked are what is desired, and what is observed beside that.
var looked = []struct {
	desired string
	beside  [][]string
}{
	{},
	{`{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x"}, "data": {"a": "1"}, "spec": {"replicas": 2}}`, nil},
	{`{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x"}, "items": [{"a": 1}]}`, [][]string{{"metadata", "managedFields"}, {"metadata", "labels"}}},
}

// What is seen of an object of which a part was decoded is what is seen of all of it.
func FuzzObject(f *testing.F) {
	for _, text := range oddities {
		f.Add([]byte(text))
	}
	f.Add([]byte(song("1")))
	f.Add([]byte(song("2")))
	f.Fuzz(func(t *testing.T, text []byte) { checkObject(t, text, song("1")) })
}

// checkObject looks at an object for the first time, and after others.
func checkObject(t *testing.T, text []byte, former string) {
	t.Helper()
	for _, looked := range looked {
		o := looker(t, looked.desired, looked.beside...)
		d := decoder{words: newWords(), observers: o, resource: configMaps}
		var live map[string]any
		wantErr := utiljson.Unmarshal(text, &live)
		got, err := d.object(bytes.Clone(text))
		if (err == nil) != (wantErr == nil) && (wantErr == nil || !tooBig(wantErr)) {
			t.Errorf("the error is %v, want %v", err, wantErr)
		}
		if err != nil || wantErr != nil {
			return
		}
		want := any(bare(o.look(configMaps, &unstructured.Unstructured{Object: live}).(*record)))
		if got := bare(got); !reflect.DeepEqual(any(got), want) {
			t.Errorf("seen as\n%+v, want\n%+v", got, want)
		}
		for _, former := range []string{former, string(text)} {
			if !saw(o, d, former) {
				continue
			}
			if got, err := d.object(bytes.Clone(text)); err != nil || !reflect.DeepEqual(any(bare(got)), want) {
				t.Errorf("after %s seen as\n%+v, want\n%+v (%v)", former, got, want, err)
			}
		}
	}
}

// saw has the object of the text be what everybody has seen last.
func saw(o *Observers, d decoder, text string) bool {
	seen, err := d.object([]byte(text))
	if err != nil {
		return false
	}
	for i, v := range o.watched[seen.key(configMaps)] {
		v.last = seen.views[i].Observation
	}
	return true
}

// bare is a record without fingerprints, which those of whole objects do not have, and with
// whole objects written in one way.
func bare(of *record) *record {
	of.views = slices.Clone(of.views)
	for i := range of.views {
		of.views[i].fingerprint = 0
		if live := of.views[i].Live; live != nil {
			of.views[i].Live = wholeOf(live.Fields())
		}
	}
	return of
}

// The same holds for texts that are damaged at random, without time to fuzz.
func TestDamagedTexts(t *testing.T) {
	seeds := append(slices.Clone(oddities), liveDeployment(7), song("2"), song("1"))
	const alphabet = `{}[]",:\u0 1e.-+truefalsn"managedFields"` + "\x00\x1f\xff\n"
	random, tries := rand.New(rand.NewPCG(1, 2)), 20_000
	if testing.Short() {
		tries = 5_000
	}
	for range tries {
		seed := seeds[random.IntN(len(seeds))]
		text := []byte(seed)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(text) + 1)
			switch random.IntN(4) {
			case 0:
				text = slices.Insert(text, at, alphabet[random.IntN(len(alphabet))])
			case 1:
				text = slices.Delete(text, at, min(len(text), at+1+random.IntN(8)))
			case 2:
				from := random.IntN(len(text) + 1)
				text = slices.Insert(text, at, slices.Clone(text[from:min(len(text), from+random.IntN(60))])...)
			default:
				if at < len(text) {
					text[at] = alphabet[random.IntN(len(alphabet))]
				}
			}
		}
		checkParser(t, text)
		checkObject(t, text, seed)
		if t.Failed() {
			t.Fatalf("the text was %q", text)
		}
	}
}

// song is an object that looked[1] wants, with this value.
func song(value string) string {
	return `{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", "labels": {"` + label + `": "me"},
		"managedFields": [{"manager": "m"}]}, "data": {"a": "` + value + `", "b": 2}, "spec": {"replicas": 2}, "status": {"phase": "x"}}`
}

// Nothing that is kept of an event is in the buffer of the next.
func TestAnEventSharesNothingWithItsText(t *testing.T) {
	o := looker(t, looked[1].desired)
	d := decoder{words: newWords(), observers: o, resource: configMaps}
	text := []byte(`{"type": "MODIFIED", "object": {"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7"}, "data": {"a": "a longer value than those that are kept once"}, "spec": {"replicas": 3}}}`)
	event, err := d.event(text)
	kit.Must(t, err)
	before := fmt.Sprintf("%+v", event)
	for i := range text {
		text[i] = 'x'
	}
	if after := fmt.Sprintf("%+v", event); after != before {
		t.Errorf("the event has become %s, and was %s", after, before)
	}
}

func TestEventsOfAStream(t *testing.T) {
	const song = `{"kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7"}}`
	cases := []struct {
		name, text string
		want       []string
	}{
		{"objects", `{"type": "ADDED", "object": ` + song + `}{"type":"MODIFIED","object":` + song + "}\n" + `{"object": ` + song + `, "type": "DELETED"}`,
			[]string{"ADDED x 7", "MODIFIED x 7", "DELETED x 7"}},
		{"a bookmark", `{"type": "BOOKMARK", "object": {"kind": "Song", "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}}`,
			[]string{"BOOKMARK  9 true"}},
		{"an error", `{"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410}}`, []string{"ERROR Expired too old"}},
		{"a brace and a quote in a text", `{"type": "ADDED", "object": {"metadata": {"name": "x"}, "data": {"a": "}}}}\"}]\\"}}}` + "\n", []string{"ADDED x "}},
		{"half an event", `{"type": "ADDED", "object": ` + song, nil},
		{"nothing", "", nil},
		{"no event", `[1]`, []string{"ERROR InternalError unable to decode an event from the watch stream: the event is no JSON object, or too large"}},
		{"an end too many", `}`, []string{"ERROR InternalError unable to decode an event from the watch stream: the event is no JSON object, or too large"}},
		{"no object", `{"type": "ADDED", "object": 1}`, []string{"ERROR InternalError"}},
		{"no JSON", `{"type": "ADDED", "object": {"metadata": {"name": nonsense}}}`, []string{"ERROR InternalError"}},
		{"no type", `{"object": ` + song + `}`, []string{"ERROR InternalError"}},
		{"an unknown type, and what comes after it", `{"type": "RENAMED", "object": ` + song + `}{"type": "ADDED", "object": ` + song + `}`, []string{"ERROR InternalError"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for name, body := range map[string]io.Reader{
				"at once": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text)),
				"broken": io.MultiReader(strings.NewReader(c.text), iotest.ErrReader(errors.New("broken"))),
			} {
				if got := eventsOf(t, body); !matches(got, c.want) {
					t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got))
				}
			}
		})
	}
}

// matches compares the beginnings.
func matches(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			return false
		}
	}
	return true
}

func eventsOf(t *testing.T, body io.Reader) []string {
	t.Helper()
	o := looker(t, "")
	o.Streams = streamsOf(body)
	w, err := o.watch(t.Context(), scope{resource: configMaps}, metav1.ListOptions{})
	kit.Must(t, err)
	defer w.Stop()
	var got []string
	for event := range w.ResultChan() {
		switch object := event.Object.(type) {
		case *record:
			got = append(got, fmt.Sprintf("%s %s %s", event.Type, object.name, object.version))
		case *metav1.PartialObjectMetadata:
			got = append(got, fmt.Sprintf("%s %s %s %s", event.Type, object.Name, object.ResourceVersion, object.Annotations[metav1.InitialEventsAnnotationKey]))
		case *metav1.Status:
			got = append(got, fmt.Sprintf("%s %s %s", event.Type, object.Reason, object.Message))
		}
	}
	return got
}

// Whoever watches no more is waited for by nobody.
func TestAStoppedStreamEnds(t *testing.T) {
	o := looker(t, "")
	reader, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	o.Streams = streamsOf(reader)
	w, err := o.watch(t.Context(), scope{resource: configMaps}, metav1.ListOptions{})
	kit.Must(t, err)
	_, err = io.WriteString(writer, `{"type": "ADDED", "object": {"metadata": {"name": "x"}}}`)
	kit.Must(t, err)
	w.Stop()
	w.Stop()
	select {
	case <-drained(w):
	case <-time.After(kit.Timeout):
		t.Fatal("it goes on")
	}
}

func drained(w watch.Interface) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		defer close(end)
		for range w.ResultChan() { // what was on its way may still arrive
		}
	}()
	return end
}

// A large event takes its buffer along.
func TestFramesKeepLittle(t *testing.T) {
	large := `{"a": "` + strings.Repeat("x", 1<<20) + `"}`
	f := frames{from: strings.NewReader(large + `{"b": 1}`)}
	for _, want := range []string{large, `{"b": 1}`} {
		got, err := f.next()
		if err != nil || string(got) != want {
			t.Fatalf("%.20s (%v), want %.20s", got, err, want)
		}
	}
	if cap(f.buffer) > 2*leastBuffer {
		t.Errorf("%d bytes are kept", cap(f.buffer))
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

// What anybody may write is not kept without end.
func TestWordsAreFew(t *testing.T) {
	words := newWords()
	for i := range 3 * manyWords {
		text := fmt.Sprintf(`{"k%d": "v%d", %q: %q}`, i, i, strings.Repeat("k", longWord+1+i%7), strings.Repeat("v", longValue+1))
		_, err := read(words, []byte(text), (*parser).value)
		kit.Must(t, err)
	}
	if len(words.names) != manyWords || len(words.values) != manyWords {
		t.Errorf("%d names and %d values are kept", len(words.names), len(words.values))
	}
}
