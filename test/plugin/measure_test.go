package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		times []time.Duration
		want  time.Duration
	}{
		{[]time.Duration{3}, 3},
		{[]time.Duration{9, 1, 2}, 2},
		{[]time.Duration{2, 1, 4, 9}, 3},
	} {
		if got := median(c.times); got != c.want {
			t.Errorf("%v: %d, want %d", c.times, got, c.want)
		}
	}
}

// Each program is started in each way as often as requested; a failure is reported, and
// not counted.
func TestMeasureAll(t *testing.T) {
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	scripts := []binary{{name: "a", version: []string{"version", "--client"}}, {name: "b", version: []string{"version"}}}
	for i := range scripts {
		scripts[i].path = filepath.Join(folder, scripts[i].name)
		kit.Must(t, os.WriteFile(scripts[i].path, []byte("#!/bin/sh\necho "+scripts[i].name+" \"$@\" >> "+log+"\n"), 0o700))
	}
	times, err := measureAll(t.Context(), scripts, 2)
	kit.Must(t, err)
	for i := range times {
		for j := range times[i] {
			if len(times[i][j]) != 2 || median(times[i][j]) <= 0 {
				t.Errorf("program %d, way %d: %v", i, j, times[i][j])
			}
		}
	}
	const round = "a --help\na --help\na version --client\na version --client\nb --help\nb --help\nb version\nb version\n"
	if text, err := os.ReadFile(log); err != nil || string(text) != round+round {
		t.Errorf("started: %s, %v", text, err)
	}
	kit.Must(t, os.WriteFile(scripts[1].path, []byte("#!/bin/sh\necho no\nexit 3\n"), 0o700))
	if _, err := measureAll(t.Context(), scripts, 1); err == nil || !strings.Contains(err.Error(), "exit status 3: no") {
		t.Errorf("a failure: %v", err)
	}
	if err := run(t.Context(), 0, io.Discard); err == nil {
		t.Error("no rounds are possible")
	}
}
