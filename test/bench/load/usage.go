package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's times.
const tick = 10 * time.Millisecond

// usage has the resources of a process, as Linux counts them.
type usage struct {
	// cpu is its user and system time since its start, and started its start after that of the machine.
	cpu, started time.Duration
	// resident is its current memory, in bytes.
	resident int64
}

// usageOf returns the usage of a process.
func usageOf(pid int) (usage, error) {
	const user, system, started, pages = 11, 12, 19, 21
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("usage of a process: %w", err)
	}
	// The name of a process may have spaces and parentheses.
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var numbers [pages + 1]int64
	for _, place := range []int{user, system, started, pages} {
		if numbers[place], err = strconv.ParseInt(words[place], 10, 64); err != nil {
			return usage{}, fmt.Errorf("usage of a process: %w", err)
		}
	}
	return usage{
		cpu: time.Duration(numbers[user]+numbers[system]) * tick, started: time.Duration(numbers[started]) * tick,
		resident: numbers[pages] * int64(os.Getpagesize()),
	}, nil
}

// age returns how long a process has run.
func (u usage) age() (time.Duration, error) {
	var up float64
	if err := scan("/proc/uptime", "%f", &up); err != nil {
		return 0, err
	}
	return time.Duration(up*float64(time.Second)) - u.started, nil
}

// peak returns the largest resident memory of a process, in bytes.
func peak(pid int) (int64, error) {
	var kibibytes int64
	err := scan(fmt.Sprintf("/proc/%d/status", pid), "VmHWM: %d kB", &kibibytes)
	return kibibytes << 10, err
}

// busy returns how long all cores together were busy since the machine started, for
// any process, or used by another machine on the same hardware. It excludes interrupts,
// which are mostly those of loopback connections.
func busy() (time.Duration, error) {
	var user, nice, system, idle, waiting, hard, soft, stolen int64
	err := scan("/proc/stat", "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &hard, &soft, &stolen)
	return time.Duration(user+nice+system+stolen) * tick, err
}

// scan reads the first line of a file that has this format.
func scan(path, format string, into ...any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, format, into...); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: no line is %q", path, format)
}
