package main

import (
	"slices"
	"strings"
	"testing"
)

// The Dockerfile builds the same as this program: the same commands with the same user, and not
// the plugin. It works with any version of Docker, any builder and any base.
func TestDockerfile(t *testing.T) {
	text := read(t, "..", "Dockerfile")
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, want := range []string{
		"ARG BUILDER=golang:1.26", "ARG BASE=gcr.io/distroless/static:nonroot", "FROM ${BUILDER} AS build", "FROM ${BASE}",
		"USER " + user, `CMD ["/agent"]`, "COPY --from=build /out/agent /out/habitat /out/webhook /",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("it has no %q", want)
		}
	}
	for _, bad := range []string{"syntax=", "--mount", "--chmod", "--link", "<<", "BUILDPLATFORM", plugin} {
		if strings.Contains(string(text), bad) {
			t.Errorf("it has %q, which a Docker without BuildKit does not know, or nobody wants", bad)
		}
	}
}

// Docker gets exactly the sources of the commands.
func TestDockerignore(t *testing.T) {
	var kept []string
	for line := range strings.Lines(string(read(t, "..", ".dockerignore"))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			kept = append(kept, name)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(kept)), slices.Sorted(slices.Values(sources))) {
		t.Errorf("it keeps %v, want %v, which TestImages builds from", kept, sources)
	}
}
