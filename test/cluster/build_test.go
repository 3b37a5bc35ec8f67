package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeGo is a slow go command that records its calls.
const fakeGo = `#!/bin/sh
echo "$1" >>"$FAKE_LOG"
case "$1 $2" in
"list -f") echo "$FAKE_DIR" ;;
"list "*) printf 'fmt false\nexample.com/a true\nexample.com/main true\n' ;;
"build "*)
	echo example.com/a >&2
	sleep "$FAKE_TIME"
	[ -z "$FAKE_ERROR" ] || { echo "$FAKE_ERROR" >&2; exit 1; }
	printf '#!/bin/sh\n' >"$4"
	chmod +x "$4" ;;
esac
`

// useFakeGo puts fakeGo first on the PATH, with an empty cache, and returns the file
// with its records.
func useFakeGo(t *testing.T, takes, failure string) (log string) {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "go"), []byte(fakeGo), 0o755))
	log = filepath.Join(bin, "log")
	for name, value := range map[string]string{
		"PATH":               bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KRAKE_TEST_CACHE":   filepath.Join(t.TempDir(), "cache"),
		"KUBEBUILDER_ASSETS": "",
		"FAKE_LOG":           log,
		"FAKE_DIR":           dir,
		"FAKE_TIME":          takes,
		"FAKE_ERROR":         failure,
	} {
		t.Setenv(name, value)
	}
	return log
}

func builds(t *testing.T, log string) int {
	t.Helper()
	text, err := os.ReadFile(log)
	must(t, err)
	return strings.Count(string(text), "build\n")
}

// Programs that need the binaries at the same time build them once.
func TestBuildOnce(t *testing.T) {
	log := useFakeGo(t, "1", "")
	var group sync.WaitGroup
	results, progress := make([]Binaries, 3), make([]strings.Builder, 3)
	for i := range results {
		group.Go(func() {
			var err error
			if results[i], err = Build(t.Context(), &progress[i]); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := builds(t, log); n != 1 {
		t.Errorf("built %d times", n)
	}
	for i, b := range results {
		if b != results[0] || b.APIServer == "" || b.ControllerManager == "" || b.Scheduler == "" {
			t.Errorf("binaries of %d: %+v", i, b)
		}
	}
	for i, want := range map[string]int{"compiling 1 of 3 packages": 1, "another program is building": 2} {
		if got := strings.Count(progress[0].String()+progress[1].String()+progress[2].String(), i); got != want {
			t.Errorf("said %d times, not %d: %s", got, want, i)
		}
	}
	if left := cached(t, "building-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func cached(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("KRAKE_TEST_CACHE"), pattern))
	must(t, err)
	return found
}

// A failed build reports its reason, and leaves no incomplete result.
func TestBuildFails(t *testing.T) {
	log := useFakeGo(t, "0", "main.go:7: no such thing")
	for range 2 {
		if _, err := Build(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "main.go:7: no such thing") || strings.Contains(err.Error(), "example.com/a") {
			t.Errorf("error: %v", err)
		}
	}
	if n := builds(t, log); n != 2 {
		t.Errorf("tried %d times, not 2", n)
	}
	if left := cached(t, "*[^k]"); len(left) > 0 { // all except .lock
		t.Errorf("left behind: %v", left)
	}
}

// The folder of KUBEBUILDER_ASSETS is used unchanged. The controllers, which
// setup-envtest does not provide, are built.
func TestBuildFromAssets(t *testing.T) {
	log := useFakeGo(t, "0", "")
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	_, err := Build(t.Context(), os.Stderr)
	complains(t, err, "find etcd and kube-apiserver")
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		addProgram(t, assets, name)
	}
	b, err := Build(t.Context(), os.Stderr)
	must(t, err)
	if filepath.Dir(b.APIServer) != assets || !strings.HasPrefix(b.ControllerManager, os.Getenv("KRAKE_TEST_CACHE")) || builds(t, log) != 1 {
		t.Errorf("binaries: %+v", b)
	}
	addProgram(t, assets, "kube-controller-manager")
	if b, err = Build(t.Context(), os.Stderr); err != nil || filepath.Dir(b.ControllerManager) != assets || b.Scheduler != "" {
		t.Errorf("binaries: %+v, %v", b, err)
	}
}

func addProgram(t *testing.T, folder, name string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755))
}

// The user's kubectl comes first, then the one beside the other programs.
func TestFindKubectl(t *testing.T) {
	users, beside := t.TempDir(), t.TempDir()
	t.Setenv("PATH", users)
	if got := findKubectl(beside); got != "kubectl" {
		t.Errorf("none: %s", got)
	}
	addProgram(t, beside, "kubectl")
	if got := findKubectl(beside); got != filepath.Join(beside, "kubectl") {
		t.Errorf("beside: %s", got)
	}
	addProgram(t, users, "kubectl")
	if got := findKubectl(beside); got != filepath.Join(users, "kubectl") {
		t.Errorf("the user's: %s", got)
	}
}

// Only one process has the lock: a second one waits, and gets it later.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("waits for nobody") })
	must(t, err)
	waited := false
	unlockSecond, err := lock(t.Context(), path, func() {
		waited = true
		unlock()
	})
	if err != nil || !waited {
		t.Fatalf("waited: %t, %v", waited, err)
	}
	unlockSecond()
}

// The wait for a lock ends with its context.
func TestLockGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() {})
	must(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

// Another version or source is another build.
func TestRecipe(t *testing.T) {
	source := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(source, name), []byte(text), 0o600))
	}
	write("go.mod", "module m\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n)\n")
	write("go.sum", "")
	write("main.go", "package main\n")
	first, err := newRecipe(source, "/cache")
	must(t, err)
	if again, err := newRecipe(source, "/cache"); err != nil || again != first || first.version != "v1.36.3" {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
	write("main.go", "package main // changed\n")
	if second, err := newRecipe(source, "/cache"); err != nil || second.folder == first.folder {
		t.Errorf("%+v, then %+v, %v", first, second, err)
	}
	write("go.mod", "module m\n")
	_, err = newRecipe(source, "/cache")
	complains(t, err, "does not require k8s.io/kubernetes")
}

// In a log, progress is a line now and then. The estimate matches the measurement on
// two cores.
func TestEstimate(t *testing.T) {
	if got, want := estimate(2711, 2), 400*time.Second; got != want {
		t.Errorf("estimate %s, want %s", got, want)
	}
}
