package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

//go:embed nginx.yaml
var application []byte

// stepTimeout limits each step: all of them take far less.
const stepTimeout = time.Minute

// demo is what the steps of the demonstration share.
type demo struct {
	out     io.Writer
	cluster *cluster.Cluster
	client  dynamic.Interface
}

// run starts a cluster, shows the steps, and stops the cluster in any case.
func run(ctx context.Context, out io.Writer) (err error) {
	fmt.Fprintln(out, "A control plane of its own, on this machine (it has no kubelet: a stand-in for it declares Pods ready, and none runs):")
	c, err := cluster.Start(ctx, cluster.Options{PretendKubelet: true, Log: out})
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(out, "\nStopping the control plane.")
		err = errors.Join(err, c.Stop())
		if err == nil {
			fmt.Fprintln(out, "Nothing is left: no process and no file.")
		}
	}()
	if _, err := installation.Install(ctx, c, out); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	return (&demo{out: out, cluster: c, client: client}).show(ctx)
}

// show runs the steps; the first with another result than expected ends it.
func (d *demo) show(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.create, d.drift, d.unobserved, d.deleteService, d.deleteApplication,
	} {
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		err := step(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) title(text string) { fmt.Fprintf(d.out, "\n=== %s\n", text) }

func (d *demo) say(format string, arguments ...any) { fmt.Fprintf(d.out, format+"\n", arguments...) }

// kubectl runs kubectl, and shows the command and its output as a user would see them.
func (d *demo) kubectl(ctx context.Context, arguments ...string) error {
	fmt.Fprintf(d.out, "$ kubectl %s\n", quote(arguments))
	command := exec.CommandContext(ctx, d.cluster.Kubectl(), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig())
	command.Dir = d.cluster.Dir()
	command.Stdout, command.Stderr = d.out, d.out
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w", arguments[0], err)
	}
	return nil
}

// quote quotes arguments for a shell.
func quote(arguments []string) string {
	words := make([]string, 0, len(arguments))
	for _, argument := range arguments {
		if strings.ContainsAny(argument, " {}\"") {
			argument = "'" + argument + "'"
		}
		words = append(words, argument)
	}
	return strings.Join(words, " ")
}

// writeApplication writes the file of the Application to the folder in which kubectl
// runs.
func (d *demo) writeApplication() error {
	fmt.Fprintf(d.out, "$ cat nginx.yaml\n%s", application)
	if err := os.WriteFile(filepath.Join(d.cluster.Dir(), "nginx.yaml"), application, 0o600); err != nil {
		return fmt.Errorf("write the Application: %w", err)
	}
	return nil
}
