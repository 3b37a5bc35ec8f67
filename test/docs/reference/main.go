// Reference writes docs/reference.md from the code: names, states, conditions, Events,
// metrics, limits, roles and flags.
//
//	make reference
//	go run ./test/docs/reference > reference.md
//
// Names, formats and writers come from the packages that own them, or from their
// source. Meanings are in tables, there or here. Run it in the folder of the module.
package main

import (
	"context"
	"io"
	"os"

	"github.com/krake-observer/krake-observer/internal/program"
)

func main() {
	program.Main("reference", nil, func(context.Context) error { return write(os.Stdout, ".") })
}

// write writes the reference of the module in a folder.
func write(out io.Writer, root string) error {
	p := &page{}
	p.text("# Reference\n\nThis page lists every annotation, key, condition, Event, metric, limit, role and flag. `make reference` generates it from the code: change it there.\nCLUSTER stands for the name of a cluster.\n")
	for _, section := range []func(*page, string) error{
		annotations, dataKeys, labels, keywords, states, conditions, events, metrics, limits, roles, flags,
	} {
		if err := section(p, root); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, p.String())
	return err
}
