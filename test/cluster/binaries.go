package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Binaries are the programs of a cluster, each the path of an executable.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string // empty if there is none: only needed if asked for
	Kubectl           string // just "kubectl" if there is none: running it says so
	Origin            string // where they come from, for people
}

// Build provides the programs: those in the folder KUBEBUILDER_ASSETS if that
// is set, else those that are built from test/cluster/kubernetes, once for each
// state of its sources, and kept in the user's cache folder. How far it is goes
// to progress.
//
// kubectl is the user's own, if there is one on the PATH.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return fromAssets(ctx, assets, progress)
	}
	return built(ctx, progress)
}

// built are the programs of the multi-call binary.
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

// fromAssets are the programs in a folder such as setup-envtest makes. These
// folders have no controllers, without which a cluster is of little use here,
// so that what is missing of them is built.
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

// completed takes from the built programs what b has not.
func (b Binaries) completed(ctx context.Context, progress io.Writer) (Binaries, error) {
	fmt.Fprintf(progress, "cluster: no kube-controller-manager in %s: one is built, whatever the version of the API server\n", b.Origin)
	more, err := built(ctx, progress)
	if err != nil {
		return Binaries{}, err
	}
	b.ControllerManager = more.ControllerManager
	b.Origin += ", with the controllers of " + more.Origin
	if b.Scheduler == "" {
		b.Scheduler = more.Scheduler
	}
	if b.Kubectl == "kubectl" {
		b.Kubectl = more.Kubectl
	}
	return b, nil
}

// inFolder names the programs that are in the folder.
func inFolder(folder string) Binaries {
	return Binaries{
		Etcd:              executable(folder, "etcd"),
		APIServer:         executable(folder, "kube-apiserver"),
		ControllerManager: executable(folder, "kube-controller-manager"),
		Scheduler:         executable(folder, "kube-scheduler"),
		Kubectl:           findKubectl(folder),
	}
}

// findKubectl prefers the user's own kubectl to that of the folder.
func findKubectl(folder string) string {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	if path := executable(folder, "kubectl"); path != "" {
		return path
	}
	return "kubectl"
}

// executable is the path of the program in the folder, or empty.
func executable(folder, name string) string {
	path, err := exec.LookPath(filepath.Join(folder, name))
	if err != nil {
		return ""
	}
	return path
}
