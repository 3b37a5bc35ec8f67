package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// programs are the names of the multi-call binary.
var programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// kubectlPackage is the program that tests start most often, and so is a binary of its own: as a part of the other, it
// would initialize the packages of all servers first, which takes longer than the rest.
const kubectlPackage = "k8s.io/kubernetes/cmd/kubectl"

// recipe is one build of the multi-call binary and of kubectl. Equal sources and flags result in the
// same folder, so that an existing folder is never built again.
type recipe struct {
	source  string // the folder of the nested module
	version string // of Kubernetes, such as v1.36.3
	folder  string // has the binaries, and a link to the first for each of programs
}

// findRecipe reads the sources, and computes the folder of their build.
func findRecipe(ctx context.Context) (recipe, error) {
	source, err := findSource(ctx)
	if err != nil {
		return recipe{}, err
	}
	root, err := cacheFolder()
	if err != nil {
		return recipe{}, err
	}
	if wanted := os.Getenv(versionVariable); wanted != "" {
		if source, err = sourceOf(ctx, source, root, wanted); err != nil {
			return recipe{}, err
		}
	}
	return newRecipe(source, root)
}

// findSource asks the go command for the nested module's folder. The module cannot be
// embedded, because go:embed does not reach into another module. runtime.Caller cannot
// find it, because -trimpath removes the folder.
func findSource(ctx context.Context) (string, error) {
	path := reflect.TypeFor[recipe]().PkgPath()
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return "", fmt.Errorf("find the source of %s (is this a checkout of it?): %w", path, withStderr(err))
	}
	return filepath.Join(strings.TrimSpace(string(out)), "kubernetes"), nil
}

// withStderr adds a command's stderr to the error of its Output.
func withStderr(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// cacheFolder returns the folder for builds.
func cacheFolder() (string, error) {
	if folder := os.Getenv("KRAKE_TEST_CACHE"); folder != "" {
		return filepath.Abs(folder)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (KRAKE_TEST_CACHE names another): %w", err)
	}
	return filepath.Join(folder, "krake-observer"), nil
}

func newRecipe(source, root string) (recipe, error) {
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return recipe{}, fmt.Errorf("read the module of Kubernetes: %w", err)
	}
	version, err := kubernetesVersion(mod)
	if err != nil {
		return recipe{}, err
	}
	sum, err := fingerprint(source, flags(version))
	if err != nil {
		return recipe{}, err
	}
	name := fmt.Sprintf("kubernetes-%s-%s-%s-%s", sum, version, runtime.GOOS, runtime.GOARCH)
	return recipe{source: source, version: version, folder: filepath.Join(root, name)}, nil
}

// kubernetesVersion reads the version of Kubernetes from a go.mod, so that an upgrade
// changes only that file.
func kubernetesVersion(mod []byte) (string, error) {
	found := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+)`).FindSubmatch(mod)
	if found == nil {
		return "", errors.New("find the version of Kubernetes: go.mod does not require k8s.io/kubernetes")
	}
	return string(found[1]), nil
}

// flags returns the flags of go build. The linker must set the version: without it, the
// API server reports v0.0.0-master, and clients depend on the version.
func flags(version string) []string {
	const variable = "-X k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	link := []string{"-s", "-w",
		variable + "gitVersion=" + version,
		variable + "gitMajor=" + parts[0],
		variable + "gitMinor=" + parts[1],
	}
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.Join(link, " ")}
}

// fingerprint identifies the sources in the folder together with the flags.
func fingerprint(folder string, flags []string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", fmt.Errorf("list sources: %w", err)
	}
	files = append(files, filepath.Join(folder, "go.mod"), filepath.Join(folder, "go.sum"))
	slices.Sort(files)
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read source: %w", err)
		}
		// With name and length, no two files together can equal a third.
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(file), len(content), content)
	}
	fmt.Fprintf(hash, "%q %s", flags, kubectlPackage)
	return fmt.Sprintf("%x", hash.Sum(nil))[:12], nil
}
