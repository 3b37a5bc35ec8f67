package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The Dockerfile builds the same as this program: both commands with the same user, and not
// the plugin. It works with any version of Docker, any builder and any base.
func TestDockerfile(t *testing.T) {
	text := read(t, "..", "Dockerfile")
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, want := range []string{
		"ARG BUILDER=golang:1.26", "ARG BASE=gcr.io/distroless/static:nonroot", "FROM ${BUILDER} AS build", "FROM ${BASE}",
		"USER " + user, `CMD ["/agent"]`, "COPY --from=build /out/agent /out/webhook /",
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

// Where Docker answers, it also builds the image and starts both commands. They run as a user
// without write permission to any file. KRAKE_DOCKER_ARGS holds arguments of docker build,
// such as --build-arg BASE=scratch.
func TestDocker(t *testing.T) {
	if text, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput(); err != nil {
		t.Skipf("not run: docker info does not answer: %v %s", err, text)
	}
	const image = "krake-observer/krake-observer:test"
	docker(t, slices.Concat([]string{"build", "--quiet", "--tag", image}, strings.Fields(os.Getenv("KRAKE_DOCKER_ARGS")), []string{".."})...)
	if got := docker(t, "image", "inspect", "--format", "{{.Config.User}} {{.Config.Cmd}}", image); got != user+" [/agent]" {
		t.Errorf("user and command are %q", got)
	}
	for command, flag := range map[string]string{"/agent": "--cluster", "/webhook": "--namespace"} {
		if text := docker(t, "run", "--rm", "--read-only", "--network=none", "--cap-drop=ALL", image, command, "--help"); !strings.Contains(text, flag) {
			t.Errorf("%s --help says\n%s\nwant %s", command, text, flag)
		}
	}
}

func docker(t *testing.T, arguments ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "docker", arguments...).CombinedOutput() //nolint:gosec // what the tests say
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return strings.TrimSpace(string(text))
}
