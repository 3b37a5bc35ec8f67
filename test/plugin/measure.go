package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// measureAll starts each program in each way, one after the other in each round, and
// returns the times by program and way: help cold and warm, version cold and warm.
func measureAll(ctx context.Context, of []binary, rounds int) ([][4][]time.Duration, error) {
	times := make([][4][]time.Duration, len(of))
	for range rounds {
		for i, p := range of {
			for j, arguments := range [][]string{{"--help"}, p.version} {
				if err := forget(p.path); err != nil {
					return nil, err
				}
				for k := range 2 {
					taken, err := start(ctx, p.path, arguments)
					if err != nil {
						return nil, err
					}
					times[i][2*j+k] = append(times[i][2*j+k], taken)
				}
			}
		}
	}
	return times, nil
}

// start runs a program to its end, without a cluster.
func start(ctx context.Context, path string, arguments []string) (time.Duration, error) {
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	begun := time.Now()
	text, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("start %s %v: %w: %s", path, arguments, err, text)
	}
	return time.Since(begun), nil
}

// forget makes the kernel drop a file from its cache, so that the next start reads it
// again. It first writes the file to disk, because unwritten pages stay.
func forget(path string) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("write %s out: %w", path, err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("have %s dropped from memory: %w", path, err)
	}
	return nil
}

// median returns the time in the middle, or the mean of the two there.
func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
