package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// sharedVariable names the folder of a cluster that several test programs share.
const sharedVariable = "KRAKE_TEST_CLUSTER"

// RunTests starts a cluster with [Shared], passes it to use, runs the tests of a package, and stops the cluster.
// It returns the exit code of the test program; an error of the cluster is printed to standard error.
//
//	func TestMain(m *testing.M) {
//		os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
//	}
func RunTests(ctx context.Context, tests interface{ Run() int }, use func(*Cluster)) int {
	code, err := runOn(ctx, tests, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return code
}

func runOn(ctx context.Context, tests interface{ Run() int }, use func(*Cluster)) (code int, err error) {
	c, err := Shared(ctx)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	use(c)
	return tests.Run(), nil
}

// Shared returns a local cluster for tests that use their own namespaces and names. It
// is the one in the folder that KRAKE_TEST_CLUSTER names, which other test programs use
// at the same time, or a new one. Stop ends the processes of Run, and the cluster only
// if it is new. The options are the usual ones: a test that needs others calls [Start].
func Shared(ctx context.Context) (*Cluster, error) {
	folder := os.Getenv(sharedVariable)
	if folder == "" {
		return Start(ctx, Options{})
	}
	kubeconfig := filepath.Join(folder, "admin.kubeconfig")
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("use the cluster of %s: %w", sharedVariable, err)
	}
	binaries, err := Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	c := &Cluster{tier: tierLocal, auditLog: filepath.Join(folder, auditLogFile), kubectl: binaries.Kubectl}
	if err := c.setConfig(kubeconfig, config); err != nil {
		return nil, err
	}
	c.supervisor, err = newSupervisor("", false)
	return c, err
}

// ShareVariable is the environment for a test program that shares this cluster.
func (c *Cluster) ShareVariable() string { return sharedVariable + "=" + c.Dir() }
