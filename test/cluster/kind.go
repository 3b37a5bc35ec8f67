package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// kindImage is the name of the image of webhook and agent in a cluster of kind.
	kindImage = "krake-observer/krake-observer:e2e"
	// kindNodeImage is the default image of the nodes.
	kindNodeImage = "kindest/node:v1.37.0"
	// kindTimeout limits the deletion of a cluster of kind.
	kindTimeout = 2 * time.Minute
)

// nodeImage returns the image of the nodes of a cluster of kind.
func nodeImage() string { return cmp.Or(os.Getenv("KRAKE_KIND_NODE_IMAGE"), kindNodeImage) }

// whyNotKind returns the reason why a cluster of kind is unavailable, or the empty
// string. It pulls a missing image of the nodes.
func whyNotKind(ctx context.Context, options Options) string {
	if !options.Pods {
		return "the tests have processes beside the cluster, which an API server in a container does not reach"
	}
	for _, program := range []string{"kind", "docker"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not on the PATH"
		}
	}
	if err := call(ctx, "docker", "info"); err != nil {
		return "docker info does not answer: " + lastLines(err.Error(), 1)
	}
	if call(ctx, "docker", "image", "inspect", nodeImage()) == nil {
		return ""
	}
	if err := call(ctx, "docker", "pull", nodeImage()); err != nil {
		return "the image of its nodes is neither there nor can it be pulled: " + lastLines(err.Error(), 1)
	}
	return ""
}

// startKind builds the image with docker, and starts a cluster of kind whose node has
// it. It deletes the cluster if that fails, and so does Stop.
func startKind(ctx context.Context, options Options) (*Cluster, error) {
	root, err := checkout(ctx)
	if err != nil {
		return nil, fmt.Errorf("start cluster of kind: %w", err)
	}
	c := &Cluster{tier: tierKind, kubectl: existingKubectl(ctx), kubelet: true, image: kindImage}
	if c.supervisor, err = newSupervisor(options.Dir, options.Keep); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("krake-e2e-%06d", rand.IntN(1e6))
	if err := c.makeKind(ctx, options, root, name); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster of kind: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) makeKind(ctx context.Context, options Options, root, name string) error {
	kubeconfig := filepath.Join(c.Dir(), "kind.kubeconfig")
	steps := [][]string{
		{"docker", "build", "--tag", kindImage, root},
		{"kind", "create", "cluster", "--name", name, "--image", nodeImage(), "--kubeconfig", kubeconfig, "--wait", "120s"},
		{"kind", "load", "docker-image", kindImage, "--name", name},
	}
	for _, step := range steps {
		if step[1] == "create" {
			c.remove = func() error { return deleteKind(ctx, name, kubeconfig) } // also deletes the parts of a failed start
		}
		fmt.Fprintf(options.log(), "cluster: %s\n", strings.Join(step, " "))
		if err := call(ctx, step[0], step[1:]...); err != nil {
			return err
		}
	}
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return err
	}
	return c.setConfig(kubeconfig, config)
}

// deleteKind deletes a cluster, even if the context of its start has ended.
func deleteKind(ctx context.Context, name, kubeconfig string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), kindTimeout)
	defer cancel()
	return call(ctx, "kind", "delete", "cluster", "--name", name, "--kubeconfig", kubeconfig)
}

// checkout returns the folder of the repository, where the Dockerfile is.
func checkout(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// call runs a program. Its error ends with the program's output.
func call(ctx context.Context, program string, arguments ...string) error {
	text, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(arguments, " "), err, bytes.TrimSpace(text))
	}
	return nil
}
