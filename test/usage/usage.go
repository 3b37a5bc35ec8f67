// Package usage asks the kernel for the resources that processes, and the whole
// machine, have used. It supports only Linux.
package usage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's times.
const tick = 10 * time.Millisecond

// Usage has the resources of a process.
type Usage struct {
	// CPU is its user and system time since its start.
	CPU time.Duration
	// Resident is its current memory, in bytes.
	Resident int64
}

// Of returns the usage of a process.
func Of(pid int) (Usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of a process: %w", err)
	}
	used, err := ofProcess(string(text))
	if err != nil {
		return Usage{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return used, nil
}

// Age returns how long a process has run.
func Age(pid int) (time.Duration, error) {
	process, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("age of a process: %w", err)
	}
	machine, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, fmt.Errorf("age of a process: %w", err)
	}
	age, err := ageIn(string(process), string(machine))
	if err != nil {
		return 0, fmt.Errorf("age of process %d: %w", pid, err)
	}
	return age, nil
}

func ageIn(stat, uptime string) (time.Duration, error) {
	const started = 19
	ticks, err := numbersOf(stat, started)
	if err != nil {
		return 0, err
	}
	up, err := strconv.ParseFloat(strings.SplitN(uptime, " ", 2)[0], 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(up*float64(time.Second)) - time.Duration(ticks[0])*tick, nil
}

// ofProcess reads user and system time, and the pages that are resident.
func ofProcess(stat string) (Usage, error) {
	const user, system, pages = 11, 12, 21
	numbers, err := numbersOf(stat, user, system, pages)
	if err != nil {
		return Usage{}, err
	}
	return Usage{CPU: time.Duration(numbers[0]+numbers[1]) * tick, Resident: numbers[2] * int64(os.Getpagesize())}, nil
}

// numbersOf parses the numbers after the name of a process, which may have spaces and
// parentheses.
func numbersOf(stat string, places ...int) ([]int64, error) {
	words := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	var numbers []int64
	for _, place := range places {
		if place >= len(words) {
			return nil, fmt.Errorf("there are only %d numbers", len(words))
		}
		number, err := strconv.ParseInt(words[place], 10, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// Peak returns the largest resident memory of a process, in bytes.
func Peak(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("peak of a process: %w", err)
	}
	return peakIn(string(text))
}

func peakIn(status string) (int64, error) {
	for line := range strings.Lines(status) {
		var kibibytes int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kibibytes); err == nil {
			return kibibytes << 10, nil
		}
	}
	return 0, fmt.Errorf("the process has no memory: %q", status)
}

// Machine returns how long all cores together were busy since the machine started, for
// any process, or used by another machine on the same hardware. It excludes interrupts,
// which are mostly those of loopback connections.
func Machine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("usage of the machine: %w", err)
	}
	busy, err := ofMachine(string(text))
	if err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	return busy, nil
}

func ofMachine(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	var user, nice, system, idle, waiting, hard, soft, stolen int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &hard, &soft, &stolen); err != nil {
		return 0, fmt.Errorf("%q: %w", line, err)
	}
	return time.Duration(user+nice+system+stolen) * tick, nil
}
