package installation

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// replica is one process of the webhook. Each start uses another port, as each Pod has
// another address.
type replica struct {
	name    string
	address string
	metrics string
	command *command // nil while it is stopped
}

// Addresses returns the addresses of the running replicas, without the balancer.
func (i *Installation) Addresses() []string {
	var addresses []string
	for _, r := range i.running() {
		addresses = append(addresses, r.address)
	}
	return addresses
}

// Metrics returns the addresses of the running replicas' metrics, which have
// self-signed certificates.
func (i *Installation) Metrics() []string {
	var urls []string
	for _, r := range i.running() {
		urls = append(urls, "https://"+r.metrics+"/metrics")
	}
	return urls
}

// StartWebhook starts the stopped replicas, all at once, and adds each to the rotation
// when it is ready. It returns when the API server calls them.
func (i *Installation) StartWebhook(ctx context.Context) error {
	var started []*replica
	for _, r := range i.replicas {
		if r.command != nil {
			continue
		}
		if err := i.startReplica(ctx, r); err != nil {
			return err
		}
		started = append(started, r)
	}
	for _, r := range started {
		if err := r.command.waitReady(ctx); err != nil {
			return err
		}
		if err := i.balancer.add(r.address); err != nil {
			return err
		}
	}
	return i.WaitCalled(ctx)
}

func (i *Installation) startReplica(ctx context.Context, r *replica) error {
	kubeconfig, err := i.kubeconfig(ctx, "krake-system", "krake-webhook")
	if err != nil {
		return err
	}
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return err
	}
	port, metrics := strconv.Itoa(ports[0]), strconv.Itoa(ports[1])
	r.address, r.metrics = net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("127.0.0.1", metrics)
	arguments := []string{"--kubeconfig", kubeconfig, "--host", "127.0.0.1", "--port", port, "--metrics-bind-address", r.metrics}
	if i.options.Source == "" { // on a busy machine the shipped value is sometimes too short, and adds a warning
		arguments = append(arguments, "--dry-run-timeout=3s")
	}
	r.command, err = i.start("webhook", r.name, append(arguments, i.options.WebhookArgs...)...)
	return err
}

// KillWebhook kills the replicas of these indices, or all (SIGKILL).
func (i *Installation) KillWebhook(indices ...int) error {
	var failures []error
	for _, r := range i.chosen(indices) {
		failures = append(failures, r.command.process.Kill(), i.balancer.remove(r.address))
		r.command = nil
	}
	return errors.Join(failures...)
}

// StopWebhook stops the replicas of these indices, or all, as a Deployment does: each
// is removed from the rotation, and then asked to end (SIGTERM).
func (i *Installation) StopWebhook(indices ...int) error {
	var failures []error
	for _, r := range i.chosen(indices) {
		failures = append(failures, i.balancer.remove(r.address), r.command.process.Stop())
		r.command = nil
	}
	return errors.Join(failures...)
}

// chosen returns the running replicas of these indices, or all running ones.
func (i *Installation) chosen(indices []int) []*replica {
	var chosen []*replica
	for index, r := range i.replicas {
		if r.command != nil && isChosen(indices, index) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// isChosen reports whether an index is among the indices; none means all.
func isChosen(indices []int, index int) bool {
	return len(indices) == 0 || slices.Contains(indices, index)
}

func (i *Installation) running() []*replica {
	var running []*replica
	for _, r := range i.replicas {
		if r.command != nil {
			running = append(running, r)
		}
	}
	return running
}

// HangWebhook lets the webhook's address accept every connection and request, and never
// answer.
func (i *Installation) HangWebhook() error { return i.balancer.hang() }

// RefuseWebhook lets the webhook's address refuse connections.
func (i *Installation) RefuseWebhook() error { return i.balancer.refuse() }

// ResumeWebhook undoes [Installation.HangWebhook] and [Installation.RefuseWebhook].
// Requests to a hanging webhook are then answered.
func (i *Installation) ResumeWebhook() error { return i.balancer.resume() }

// Connections returns how many connections the webhook's address has accepted since the
// installation.
func (i *Installation) Connections() int64 { return i.balancer.accepted.Load() }

// WaitCalled waits until the API server uses the configuration: the webhook, and not
// the API server, then refuses an invalid Application.
func (i *Installation) WaitCalled(ctx context.Context) error {
	return poll(ctx, "the API server does not call the webhook", func() bool {
		err := i.probe(ctx, "v0", "default")
		return err != nil && strings.Contains(err.Error(), "Unsupported value")
	})
}

// WaitNotCalled waits until the API server no longer knows a configuration.
func (i *Installation) WaitNotCalled(ctx context.Context) error {
	return poll(ctx, "the API server still calls the webhook", func() bool {
		return i.probe(ctx, "v0", "default") == nil
	})
}

// waitEnforced waits until the API server enforces the policies: only they apply to the
// namespace of the webhook.
func (i *Installation) waitEnforced(ctx context.Context) error {
	return poll(ctx, "the API server does not enforce the policies", func() bool {
		err := i.probe(ctx, application.Format, "krake-system")
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
}

// probe sends the creation of an Application, as a dry run.
func (i *Installation) probe(ctx context.Context, format, namespace string) error {
	client, err := kubernetes.NewForConfig(i.cluster.RESTConfig())
	if err != nil {
		return err
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "krake-probe", Annotations: map[string]string{application.FormatAnnotation: format},
	}}
	_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
