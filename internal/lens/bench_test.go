package lens

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// BenchmarkLines shows an object of 2,000 lines.
func BenchmarkLines(b *testing.B) {
	var variables strings.Builder
	for i := range 950 {
		fmt.Fprintf(&variables, "\n        - {name: VARIABLE_%d, value: \"%d\"}", i, i)
	}
	text := strings.Replace(web, "        args: [-q, -x]\n", "        env:"+variables.String()+"\n", 1)
	app, expected := admitted(b, text, "")
	live := parsed(b, text)
	live["metadata"].(map[string]any)["namespace"] = "demo"
	for b.Loop() {
		lines, err := Lines(app, expected, live, false)
		check.Must(b, err)
		if len(lines) < 1900 {
			b.Fatalf("%d lines", len(lines))
		}
	}
}
