// Ratios reads the output of go test -bench, of one run or several, and prints
// a Markdown table with a row for each object and operation and a column for
// each engine:
//
//	go test -bench . -count 6 | go run ./ratios
//
// Names have the form Benchmark/op=compare/object=crd/engine=krake; a further
// engine has its time divided by that of krake. Refused: the output of a test
// that failed, because what is missing there would not be seen.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the figures: %w", err)
	}
	results, err := read(text)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, results.markdown())
	return err
}
