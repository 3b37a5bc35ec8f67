package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profile profiles between two signals, repeatedly.
func profile(ctx context.Context, folder string, asked <-chan os.Signal) {
	var cpu *os.File
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		var err error
		if cpu == nil {
			cpu, err = begin(folder)
		} else {
			err, cpu = end(cpu), nil
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "profiled:", err)
		}
	}
}

func begin(folder string) (*os.File, error) {
	// The file gets its final name only when it is complete.
	file, err := os.CreateTemp(folder, "unfinished-")
	if err != nil {
		return nil, err
	}
	return file, pprof.StartCPUProfile(file)
}

func end(cpu *os.File) error {
	pprof.StopCPUProfile()
	folder := filepath.Dir(cpu.Name())
	heap, err := os.Create(filepath.Join(folder, "heap.pprof"))
	if err != nil {
		return err
	}
	runtime.GC() // garbage does not count as memory that the agent needs
	return errors.Join(pprof.WriteHeapProfile(heap), heap.Close(), cpu.Close(), os.Rename(cpu.Name(), filepath.Join(folder, "cpu.pprof")))
}
