package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Binaries has the paths of the programs of a cluster.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Kubectl           string // "kubectl" without one: then its call fails with the reason
	Origin            string // where they come from, for users
}

// Build provides the programs. It takes them from the folder KUBEBUILDER_ASSETS, if
// that is set. Otherwise it builds them from test/cluster/kubernetes, once for each
// state of the sources, in the user's cache folder. It reports to progress.
//
// kubectl is the user's own, if there is one on the PATH.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return fromAssets(ctx, assets, progress)
	}
	return built(ctx, progress)
}

// built returns the programs of the multi-call binary.
func built(ctx context.Context, progress io.Writer) (Binaries, error) {
	recipe, err := findRecipe(ctx)
	if err != nil {
		return Binaries{}, err
	}
	if err := recipe.provide(ctx, progress); err != nil {
		return Binaries{}, fmt.Errorf("build Kubernetes %s: %w", recipe.version, err)
	}
	b := inFolder(recipe.folder)
	b.Origin = "Kubernetes " + recipe.version + ", built from Go modules"
	return b, nil
}

// fromAssets returns the programs in a folder such as setup-envtest makes. Such folders
// have no controllers, which the tests need, so that missing programs are built.
func fromAssets(ctx context.Context, folder string, progress io.Writer) (Binaries, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Binaries{}, fmt.Errorf("find KUBEBUILDER_ASSETS: %w", err)
	}
	b := inFolder(folder)
	b.Origin = "KUBEBUILDER_ASSETS=" + folder
	if b.Etcd == "" || b.APIServer == "" {
		return Binaries{}, fmt.Errorf("find etcd and kube-apiserver: not both are in KUBEBUILDER_ASSETS=%s", folder)
	}
	if b.ControllerManager == "" {
		return b.completed(ctx, progress)
	}
	return b, nil
}

// completed adds missing programs from the built ones.
func (b Binaries) completed(ctx context.Context, progress io.Writer) (Binaries, error) {
	fmt.Fprintf(progress, "cluster: no kube-controller-manager in %s: one is built, whatever the version of the API server\n", b.Origin)
	more, err := built(ctx, progress)
	if err != nil {
		return Binaries{}, err
	}
	b.ControllerManager = more.ControllerManager
	b.Origin += ", with the controllers of " + more.Origin
	if b.Kubectl == "kubectl" {
		b.Kubectl = more.Kubectl
	}
	return b, nil
}

// inFolder returns the paths of the programs that are in the folder.
func inFolder(folder string) Binaries {
	return Binaries{
		Etcd:              executable(folder, "etcd"),
		APIServer:         executable(folder, "kube-apiserver"),
		ControllerManager: executable(folder, "kube-controller-manager"),
		Kubectl:           findKubectl(folder),
	}
}

// findKubectl prefers the kubectl of the folder, whose version suits the API server, to the user's own.
func findKubectl(folder string) string {
	if path := executable(folder, "kubectl"); path != "" {
		return path
	}
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	return "kubectl"
}

// executable returns the path of the program in the folder, or the empty string.
func executable(folder, name string) string {
	path, err := exec.LookPath(filepath.Join(folder, name))
	if err != nil {
		return ""
	}
	return path
}
