package watchjson

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A large event does not leave its buffer behind.
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
