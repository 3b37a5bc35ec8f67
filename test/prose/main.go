// Prose checks the wording of texts for people: Markdown, Go comments, and the string
// literals of the product that are sentences. It has forbidden words and constructions,
// each with an alternative, and limits the length of sentences.
//
//	go run ./test/prose          # the whole repository
//	go run ./test/prose docs     # one folder or file
//
// exceptions.yaml has texts that are right in one place, with the reason.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/program"
)

//go:embed exceptions.yaml
var exceptions []byte

func main() {
	program.Main("prose", options{}, func(context.Context) error {
		return run(pflag.Args(), os.Stdout)
	})
}

// options has no flags: the arguments are folders and files.
type options struct{}

func (options) AddFlags(*pflag.FlagSet) {}

// run checks the folders and files, or the whole repository, and prints each finding on a
// line. When it checks everything, an unused exception is also a finding.
func run(roots []string, out io.Writer) error {
	var excepted []exception
	if err := yaml.UnmarshalStrict(exceptions, &excepted); err != nil {
		return fmt.Errorf("read exceptions.yaml: %w", err)
	}
	whole := len(roots) == 0
	if whole {
		roots = []string{"."}
	}
	passages, err := collect(roots)
	if err != nil {
		return err
	}
	found, unused := check(passages, excepted)
	for _, f := range found {
		fmt.Fprintln(out, f)
	}
	if whole {
		for _, e := range unused {
			fmt.Fprintf(out, "test/prose/exceptions.yaml: nothing in %s has %q: remove the exception\n", e.File, e.Text)
		}
	} else {
		unused = nil
	}
	if n := len(found) + len(unused); n > 0 {
		return fmt.Errorf("%d findings in %d passages", n, len(passages))
	}
	return nil
}
