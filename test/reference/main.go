// Reference writes docs/reference.md from the code: the names, states, conditions,
// Events, metrics, limits, roles and flags that there are.
//
//	make reference
//	go run ./test/reference > reference.md
//
// What something is called, who may write it and what it holds comes from the packages
// that own it, or is read out of their source; what it means is in tables, there or
// here, of which a test says what is missing and what is too much. Run it in the folder
// of the module.
package main

import (
	"context"
	"io"
	"os"

	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	program.Main("reference", nil, func(context.Context) error { return write(os.Stdout, ".") })
}

// write writes the reference of the module in a folder.
func write(out io.Writer, root string) error {
	p := &page{}
	p.text("# Reference\n\nGenerated from the code by `make reference`: change it there. CLUSTER stands for the name of a cluster.\n")
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
