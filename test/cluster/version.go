package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// versionVariable names another minor version of Kubernetes, such as 1.33, or one of its patches. The
// tests then run with the newest patch of it.
const versionVariable = "KRAKE_TEST_KUBERNETES"

const kubernetesModule = "k8s.io/kubernetes"

// sourceOf returns the folder of the nested module for a version of Kubernetes. It derives the module
// from the given one, once for each version.
func sourceOf(ctx context.Context, source, root, wanted string) (string, error) {
	if !regexp.MustCompile(`^v?1\.\d+(\.\d+)?$`).MatchString(wanted) {
		return "", fmt.Errorf("%s: %q is no version such as 1.33 or 1.33.1", versionVariable, wanted)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(root, "source-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // it was renamed, or is of no use
	patch, err := newestOf(ctx, scratch, strings.TrimPrefix(wanted, "v"))
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "source-"+patch)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	mod, err := readMod(ctx, scratch, patch)
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(filepath.Join(source, "main.go"))
	if err != nil {
		return "", err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(scratch, "main.go"), program, 0o600),
		os.WriteFile(filepath.Join(scratch, "go.mod"), []byte(mod.nested(patch)), 0o600),
	); err != nil {
		return "", err
	}
	if _, err := goIn(ctx, scratch, "mod", "tidy"); err != nil {
		return "", err
	}
	if err := os.Rename(scratch, folder); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return folder, nil
}

// newestOf returns the newest release with the given start: that of 1.33 is v1.33.13.
func newestOf(ctx context.Context, folder, wanted string) (string, error) {
	out, err := goIn(ctx, folder, "list", "-m", "-versions", kubernetesModule)
	if err != nil {
		return "", err
	}
	releases := slices.DeleteFunc(strings.Fields(out), func(v string) bool {
		return !strings.HasPrefix(v+".", "v"+wanted+".") || strings.Contains(v, "-")
	})
	if len(releases) == 0 {
		return "", fmt.Errorf("%s: there is no release %s of Kubernetes", versionVariable, wanted)
	}
	return slices.MaxFunc(releases, func(a, b string) int {
		order, _ := version.MustParseSemantic(a).Compare(b)
		return order
	}), nil
}

// module is a go.mod, as go mod edit -json prints it.
type module struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path string }
		New struct{ Path string }
	}
}

// readMod reads the go.mod of a release of Kubernetes.
func readMod(ctx context.Context, folder, patch string) (module, error) {
	var found struct{ GoMod string }
	var mod module
	out, err := goIn(ctx, folder, "mod", "download", "-json", kubernetesModule+"@"+patch)
	if err == nil {
		err = json.Unmarshal([]byte(out), &found)
	}
	if err == nil {
		out, err = goIn(ctx, folder, "mod", "edit", "-json", found.GoMod)
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &mod)
	}
	return mod, err
}

// nested returns the go.mod of the nested module. The staging modules are in folders of the
// repository of Kubernetes, and are published as v0 with the same minor version. etcd is as old as its
// client.
func (m module) nested(patch string) string {
	staging := "v0" + strings.TrimPrefix(patch, "v1")
	text := fmt.Sprintf("module kubernetes\n\ngo %s\n\ntool %s\n\nrequire (\n\t%s %s\n", m.Go, kubectlPackage, kubernetesModule, patch)
	for _, required := range m.Require {
		if required.Path == "go.etcd.io/etcd/client/v3" {
			text += fmt.Sprintf("\tgo.etcd.io/etcd/server/v3 %s\n", required.Version)
		}
	}
	text += ")\n"
	for _, replaced := range m.Replace {
		if strings.HasPrefix(replaced.New.Path, "./staging/") {
			text += fmt.Sprintf("replace %s => %s %s\n", replaced.Old.Path, replaced.Old.Path, staging)
		}
	}
	return text
}

// goIn runs a go command in a folder, outside of this module.
func goIn(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(arguments, " "), withStderr(err))
	}
	return string(out), nil
}
