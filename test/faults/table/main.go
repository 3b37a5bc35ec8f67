// Table prints the trials of the release tier as a table in Markdown:
//
//	go run ./test/faults/table bin/faults
//
// It ends with an error if an invariant was violated and its trial has not passed
// since.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	program.Main("table", nil, func(context.Context) error { return run(os.Args[1:]) })
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("the one argument is the folder with the results")
	}
	records, err := results.Read(arguments[0])
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return fmt.Errorf("there are no results in %s", arguments[0])
	}
	fmt.Print(results.Markdown(results.Table(records)))
	open := results.Unmended(records)
	for i := range open {
		fmt.Printf("\n%s, seed %d: %s\n", open[i].Point, open[i].Seed, strings.Join(open[i].Violations, "; "))
	}
	if len(open) > 0 {
		return fmt.Errorf("%d trials ended with a violation, and were not tried again", len(open))
	}
	return nil
}
