package bench

import (
	"bytes"
	"encoding/json"
	"testing"
	"unsafe"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Each engine finds the planted differences, or its figure is invalid.
func TestEnginesFindWhatTheyShould(t *testing.T) {
	for _, s := range subjects(t) {
		for _, m := range measurements(t, s) {
			t.Run(s.name+"/"+m.operation+"/"+m.engine, func(t *testing.T) {
				if got, err := m.run(); err != nil || got != m.want {
					t.Errorf("%d results, want %d; error: %v", got, m.want, err)
				}
			})
		}
	}
}

// Two of the engines only report that there is a difference, and no count.
func TestOneDriftIsOneDifference(t *testing.T) {
	for _, s := range subjects(t) {
		if got := differences(s.live, copied(t, s.live)); got != 0 {
			t.Errorf("%s: a copy has %d differences", s.name, got)
		}
		if got := differences(s.live, s.drifted); got != 1 {
			t.Errorf("%s: the drift is %d differences", s.name, got)
		}
		result, err := argoDiff(s.desired, s.drifted)
		kit.Must(t, err)
		if got := differences(unmarshalled(t, result.NormalizedLive), unmarshalled(t, result.PredictedLive)); got != 1 {
			t.Errorf("%s: for Argo CD, the drift is %d differences", s.name, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range subjects(t) {
		switch s.name {
		case "deployment":
			about(t, "lines of the Deployment", lines(t, s.live), 200)
		case "crd":
			about(t, "lines of the CustomResourceDefinition", lines(t, s.desired), 2000)
		case "configmap":
			size := 0
			for _, value := range at(s.desired, "data") {
				size += len(value.(string))
			}
			about(t, "bytes of the ConfigMap's data", size, 200<<10)
		}
	}
}

// Two strings in the same memory are equal without being read.
func TestObjectsShareNoStrings(t *testing.T) {
	for _, s := range subjects(t) {
		known := map[*byte]bool{}
		for _, value := range []object{s.desired, s.live, s.drifted} {
			places := map[*byte]bool{}
			placesOf(value, places)
			for place := range places {
				if known[place] {
					t.Fatalf("%s: objects share a string", s.name)
				}
				known[place] = true
			}
		}
	}
}

func about(t *testing.T, what string, got, want int) {
	t.Helper()
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("%d %s, want %d within 10%%", got, what, want)
	}
}

func lines(t *testing.T, value object) int {
	t.Helper()
	text, err := yaml.Marshal(value)
	kit.Must(t, err)
	return bytes.Count(text, []byte("\n"))
}

func unmarshalled(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	kit.Must(t, json.Unmarshal(text, &value))
	return value
}

// differences counts the scalar values that differ.
func differences(a, b any) int {
	found := 0
	switch a := a.(type) {
	case object:
		b, _ := b.(object)
		for name := range a {
			found += differences(a[name], b[name])
		}
		for name := range b {
			if _, ok := a[name]; !ok {
				found++
			}
		}
	case []any:
		b, _ := b.([]any)
		for i := range max(len(a), len(b)) {
			found += differences(element(a, i), element(b, i))
		}
	default:
		found = count(a != b)
	}
	return found
}

func element(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

// placesOf collects the addresses of the strings of a value. Strings of one byte share
// a table of Go's runtime.
func placesOf(value any, places map[*byte]bool) {
	switch value := value.(type) {
	case object:
		for _, field := range value {
			placesOf(field, places)
		}
	case []any:
		for _, item := range value {
			placesOf(item, places)
		}
	case string:
		if len(value) > 1 {
			places[unsafe.StringData(value)] = true //nolint:gosec // addresses are compared, not followed
		}
	}
}
