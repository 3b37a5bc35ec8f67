package tosca_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/tosca"
	"github.com/krake-observer/krake-observer/test/check"
)

// Any input is cheap in memory and time. The limits are some times the measured figures.
// Without the checks of the program, the cost would be a hundred times as high.
func TestHostileInputIsCheap(t *testing.T) {
	entries := make([]member, 0, 1000)
	for range 999 {
		entries = append(entries, member{"folder/" + strings.Repeat("x", 200), ""})
	}
	dense := func(lists int) []byte {
		return []byte(version + "description: [" + strings.Repeat("[],", lists) + "[]]\n" + nodes(spec("")))
	}
	tests := []struct {
		why       string
		translate func([]byte) ([]any, error)
		input     []byte
		megabytes uint64
		err       string
	}{
		{"a bomb of 64 MiB", tosca.TranslateArchive, bomb(t, 64<<20), 4, "more than 262144 bytes"},
		{"a bomb of 64 MiB that says it is none", tosca.TranslateArchive, lyingBomb(t, 64<<20), 4, "has wrong data about this file"},
		{"300,000 entries", tosca.TranslateArchive, manyEntries(300_000, 3), 4, "the maximum is 1000"},
		{"4,000 entries", tosca.TranslateArchive, manyEntries(4000, 4000), 16, "the maximum is 1000"},
		{"1,000 entries of the same long name", tosca.TranslateArchive, packed(t, entries...), 16, "and 988 more"},
		{"a text of as many lists as its bytes can hold", tosca.Translate, dense((tosca.MaxBytes - 1000) / 3), 64, "more than 50000 values"},
		{"a text of as many lists as it may hold", tosca.Translate, dense(manifest.MaxValues - 100), 64, ""},
		{"what is doubled again and again", tosca.Translate, []byte(doubled(strings.Repeat("x", 100))), 32, "more than 262144 bytes"},
		{"what is doubled to nothing", tosca.Translate, []byte(doubled("''")), 64, "more than 100000 steps"},
		{"keys that are looked for again and again", tosca.Translate, []byte(searched()), 128, "more than 100000 steps"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			var before, after runtime.MemStats
			began := time.Now()
			runtime.ReadMemStats(&before)
			_, err := test.translate(test.input)
			runtime.ReadMemStats(&after)
			if message := check.Message(err); !strings.Contains(message, test.err) || test.err == "" && err != nil {
				t.Errorf("the error is %s, and should have %q", message, test.err)
			}
			megabytes, took := (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(began)
			t.Logf("%d MiB in %v", megabytes, took)
			if megabytes > test.megabytes {
				t.Errorf("%d MiB were allocated, and at most %d should be", megabytes, test.megabytes)
			}
			if took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// searched returns a template that looks up the last key of a large mapping again and again.
func searched() string {
	var keys strings.Builder
	for i := range 10_000 {
		keys.WriteString("k" + string(rune('a'+i%26)) + strings.Repeat("x", i%7) + strings.ToUpper(string(rune('a'+i/26%26))) + string(rune('0'+i/676)) + ": 1, ")
	}
	last := "{get_property: [SELF, m, last]}, "
	return version + typed(", m: {type: map, default: {"+keys.String()+"last: ''}}, a: {type: string, default: {concat: ["+strings.Repeat(last, 100)+"'']}}") +
		nodes(parts(strings.Repeat(", {get_property: [SELF, a]}", 900)))
}
