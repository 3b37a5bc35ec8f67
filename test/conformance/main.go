// Conformance runs the vector files of a folder against the observer-schema
// engine and prints a line per file, and each failure with a difference:
//
//	go run ./test/conformance DIR
//
// It exits with 1 if a case failed.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance DIR")
		os.Exit(2)
	}
	failed, err := run(os.Stdout, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
