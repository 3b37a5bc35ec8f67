// Package clusters has the commands for the administrator of a hub: enrol and remove a cluster, check what blocks an uninstall, and
// check the installation.
package clusters

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/supported"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newEnrolCommand(e), newRemoveCommand(e), newUninstallCommand(e), newVersionCommand(e)}
}

func newVersionCommand(e *env.Environment) *cobra.Command {
	var checks bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and whether it fits the cluster",
		Long: `Show the version of this program, and the format of Applications that it knows.

With --check, the command looks at the cluster: whether its version of Kubernetes is
supported, whether the webhook completes a new Application (it asks by a dry run in the
namespace), and whether the agent of cluster local is heard. It prints ok, problem or
unknown for each, and exits with status 1 if there is a problem. What your user may not
read is unknown.`,
		Example: `  kubectl krake version --check`,
		Args:    env.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			fmt.Fprintf(e.Out, "kubectl krake %s, for Applications of format %s\n", versionOf(info), application.Format)
			if !checks {
				return nil
			}
			return (&inspection{Environment: e}).run(command.Context())
		},
	}
	command.Flags().BoolVar(&checks, "check", false, "look at the cluster, too")
	return command
}

// versionOf returns the version of the module, and the commit if the binary was built in its
// repository.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		return "of an unknown version"
	}
	text := info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			text += ", commit " + setting.Value
		}
	}
	return text + ", " + info.GoVersion
}

// inspection prints one line for each thing that it looks at.
type inspection struct {
	*env.Environment

	problem bool
	// noAgent: there is no Deployment of an agent here.
	noAgent bool
}

func (i *inspection) ok(format string, values ...any) { i.print("ok", format, values...) }

func (i *inspection) unknown(format string, values ...any) { i.print("unknown", format, values...) }

func (i *inspection) wrong(format string, values ...any) {
	i.problem = true
	i.print("problem", format, values...)
}

func (i *inspection) print(result, format string, values ...any) {
	fmt.Fprintf(i.Out, "%-8s %s\n", result, env.OneLine(fmt.Sprintf(format, values...)))
}

func (i *inspection) run(ctx context.Context) error {
	for _, look := range []func(context.Context) error{i.server, i.webhook, i.pods, i.agent} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if i.problem {
		return env.ErrDifferent
	}
	return nil
}

// server looks at the version of Kubernetes. Without an answer there is nothing else to look at.
func (i *inspection) server(context.Context) error {
	client, err := i.Hub.ToDiscoveryClient()
	if err != nil {
		return err
	}
	info, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	if err := supported.Check(info.GitVersion); err != nil {
		i.wrong("%v", err)
		return nil
	}
	i.ok("Kubernetes %s", info.GitVersion)
	return nil
}

// webhook creates an Application with a dry run.
func (i *inspection) webhook(ctx context.Context) error {
	client, namespace, err := i.Applications()
	if err != nil {
		return err
	}
	asked := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "krake-version-check-" + rand.String(10), Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{application.ManifestKey: "{apiVersion: v1, kind: ConfigMap, metadata: {name: krake-version-check-object}}"},
	}
	answer, err := client.ConfigMaps(namespace).Create(ctx, asked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: env.FieldManager})
	var status apierrors.APIStatus
	switch {
	case err == nil && application.IsAdmitted(answer):
		i.ok("the webhook completes Applications")
	case err == nil:
		i.wrong("no webhook completes a new Application in namespace %s: install it, or look at its MutatingWebhookConfiguration", namespace)
	case apierrors.IsForbidden(err) && errors.As(err, &status) && ptr.Deref(status.Status().Details, metav1.StatusDetails{}).Group == application.Domain:
		i.ok("the webhook answers, and refuses an Application of your user in namespace %s", namespace)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		i.unknown("whether the webhook answers: an Application cannot be created in namespace %s: %v", namespace, err)
	default:
		i.wrong("the API server does not create an Application: %v", err)
	}
	return nil
}

// agent looks at the agent of cluster local.
func (i *inspection) agent(ctx context.Context) error {
	beats, err := apps.ReadHeartbeats(ctx, i.Environment, application.LocalCluster)
	if err != nil {
		return err
	}
	lease, known := beats.Leases[application.HubLease(application.LocalCluster)]
	switch silence := beats.Silence(application.LocalCluster, i.Now()); {
	case !beats.Read:
		i.unknown("whether the agent of cluster %s is heard: your user may not read Leases in namespace %s", application.LocalCluster, application.AgentsNamespace)
	case !known && i.noAgent:
		i.unknown("whether this hub is to have an agent of its own: there is none of cluster %s", application.LocalCluster)
	case silence != "":
		i.wrong("%s", silence)
	default:
		i.ok("the agent of cluster %s was heard %s", application.LocalCluster, env.AgoOrNever(lease.RenewTime.Time, i.Now().Add(beats.Ahead)))
	}
	return nil
}

// agentDeployment is the name of the Deployment of the agent of cluster local.
const agentDeployment = "krake-agent"

// pods looks at the Deployments of webhook and agent. On a hub without an agent of its own there is
// one of them.
func (i *inspection) pods(ctx context.Context) error {
	config, err := i.Hub.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := appsv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, d := range []struct{ namespace, name string }{{application.SystemNamespace, "krake-webhook"}, {application.AgentsNamespace, agentDeployment}} {
		live, err := client.Deployments(d.namespace).Get(ctx, d.name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			i.unknown("which version runs: your user may not read Deployment %s in namespace %s", d.name, d.namespace)
		case apierrors.IsNotFound(err):
			i.noAgent = i.noAgent || d.name == agentDeployment
			i.unknown("which version runs: there is no Deployment %s in namespace %s", d.name, d.namespace)
		case err != nil:
			return err
		default:
			i.deployment(d.name, live)
		}
	}
	return nil
}

func (i *inspection) deployment(name string, live *appsv1.Deployment) {
	var images []string
	for _, container := range live.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	wanted, ready, say := ptr.Deref(live.Spec.Replicas, 0), live.Status.ReadyReplicas, i.ok
	if ready < wanted || wanted == 0 {
		say = i.wrong
	}
	say("Deployment %s has %d of %d Pods ready, with image %s", name, ready, wanted, strings.Join(images, ", "))
}
