package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// secondsFile has a line for each package and tier: the tier, the package, and the
// seconds of its tests on a machine with 2 cores, beside two other packages.
const secondsFile = "test/gate/seconds.txt"

// seconds has the time of each package's tests in a tier.
type seconds map[string]float64

// of returns the time of a small package for one without a record.
func (s seconds) of(path string) float64 {
	if taken, ok := s[path]; ok {
		return taken
	}
	return 5
}

// readSeconds reads the times of a tier. Without a file it returns none.
func readSeconds(tier string) (seconds, error) {
	all, err := readTiers()
	if found := all[tier]; found != nil {
		return found, err
	}
	return seconds{}, err
}

func readTiers() (map[string]seconds, error) {
	all := map[string]seconds{}
	text, err := os.ReadFile(secondsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for number, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("%s:%d: it has %d words, want tier, package and seconds", secondsFile, number+1, len(words))
		}
		taken, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", secondsFile, number+1, err)
		}
		if all[words[0]] == nil {
			all[words[0]] = seconds{}
		}
		all[words[0]][words[1]] = taken
	}
	return all, nil
}

// write replaces the times of a tier in the file. Packages without a new time keep
// theirs.
func (s seconds) write(tier string) error {
	all, err := readTiers()
	if err != nil {
		return err
	}
	if all[tier] == nil {
		all[tier] = seconds{}
	}
	maps.Copy(all[tier], s)
	var text strings.Builder
	for _, tier := range slices.Sorted(maps.Keys(all)) {
		for _, path := range slices.Sorted(maps.Keys(all[tier])) {
			fmt.Fprintf(&text, "%s %s %.0f\n", tier, path, all[tier][path])
		}
	}
	return os.WriteFile(secondsFile, []byte(text.String()), 0o644)
}
