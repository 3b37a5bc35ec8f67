package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	tests := []struct{ why, input, want string }{
		{
			"the median of the runs, the farthest of them, and the ratio to krake",
			`goos: linux
BenchmarkEngines/op=compare/object=crd/engine=krake-2  	 1000	 10000 ns/op	 0 B/op	 0 allocs/op
BenchmarkEngines/op=compare/object=crd/engine=krake-2  	 1000	 12000 ns/op	 0 B/op	 0 allocs/op
BenchmarkEngines/op=compare/object=crd/engine=krake-2  	 1000	 11000 ns/op	 0 B/op	 0 allocs/op
BenchmarkEngines/op=compare/object=crd/engine=other-2  	  100	 13310000 ns/op	 2048 B/op	 12 allocs/op
PASS
ok  	example.org/bench	1.2s
`,
			`| object | operation | krake | other |
|---|---|---|---|
| crd | compare | 11 µs ±9%, 0 B, 0 allocs | **1210×** 13.3 ms ±0%, 2 KiB, 12 allocs |
`,
		},
		{
			"an even number of runs has its median between two of them",
			`BenchmarkEngines/op=compare/object=crd/engine=krake-2 1000 10 ns/op
BenchmarkEngines/op=compare/object=crd/engine=krake-2 1000 20 ns/op
`,
			`| object | operation | krake |
|---|---|---|
| crd | compare | 15 ns ±33%, 0 B, 0 allocs |
`,
		},
		{
			"what only one engine does has no ratio",
			`BenchmarkEngines/op=project/object=crd/engine=krake-2 1000 10 ns/op
BenchmarkEngines/op=convert/object=crd/engine=smd+convert-2 1000 20 ns/op
`,
			`| object | operation | krake | smd+convert |
|---|---|---|---|
| crd | project | 10 ns ±0%, 0 B, 0 allocs | - |
| crd | convert | - | 20 ns ±0%, 0 B, 0 allocs |
`,
		},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			var got strings.Builder
			if err := run(strings.NewReader(test.input), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestTableRefuses(t *testing.T) {
	const figure = "BenchmarkEngines/op=compare/object=crd/engine=krake-2 1000 10 ns/op\n"
	tests := []struct{ why, input, want string }{
		{"a test that failed", figure + "--- FAIL: BenchmarkEngines\nFAIL\n", "the test failed: --- FAIL: BenchmarkEngines"},
		{"one that did not compile", "FAIL\texample.org/bench [build failed]\n", "the test failed: FAIL\texample.org/bench [build failed]"},
		{"no figures", "PASS\n", "there are no figures"},
		{"a figure that is none", "BenchmarkEngines/op=compare/object=crd/engine=krake-2 1000 x ns/op\n", "input:1: parsing measurement: invalid syntax"},
		{"a name without an engine", "BenchmarkEngines/op=compare/object=crd-2 1000 10 ns/op\n", "the name lacks op, object or engine: Engines/op=compare/object=crd-2"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			var got strings.Builder
			err := run(strings.NewReader(test.input), &got)
			if err == nil || err.Error() != test.want || got.Len() > 0 {
				t.Errorf("got %q and %v, want %q", got.String(), err, test.want)
			}
		})
	}
}
