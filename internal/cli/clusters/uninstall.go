package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/application"
)

func newUninstallCommand(e *env.Environment) *cobra.Command {
	var check bool
	command := &cobra.Command{
		Use:   "uninstall --check",
		Short: "Show what blocks a clean uninstall, and the order of the steps",
		Long: "Show what blocks a clean uninstall, and the order of the steps. The command changes nothing. " +
			"An Application that you delete after its agent is gone waits for ever, and so does its namespace. " +
			"Exit status 0: nothing blocks the uninstall, 1: something does, 2: the check was not possible.",
		Args: env.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if !check {
				return errors.New("this command does not uninstall: add --check to see what to do before, and in which order")
			}
			return checkUninstall(command.Context(), e)
		},
	}
	command.Flags().BoolVar(&check, "check", false, "show what blocks an uninstall")
	return command
}

func checkUninstall(ctx context.Context, e *env.Environment) error {
	items, _, err := apps.List(ctx, e, "", metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Applications of all namespaces: %w", err)
	}
	beats, err := apps.ReadHeartbeats(ctx, e)
	if err != nil {
		return err
	}
	if !beats.Read {
		fmt.Fprintf(e.ErrOut, "Warning: you may not list Leases in namespace %s, so that it is not known which agents are gone\n", application.AgentsNamespace)
	}
	clusters, err := enrolled(ctx, e)
	if err != nil {
		return fmt.Errorf("list the clusters that are enrolled, as ServiceAccounts in namespace %s: %w", application.AgentsNamespace, err)
	}
	r := remainsOf(items, clusters, beats, e.Now())
	if err := r.print(e.Out, env.PainterFor(e.Out)); err != nil || r.isClean() {
		return err
	}
	return env.ErrDifferent
}

func enrolled(ctx context.Context, e *env.Environment) ([]string, error) {
	client, err := e.Metadata()
	if err != nil {
		return nil, err
	}
	accounts := client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(application.AgentsNamespace)
	list, err := accounts.List(ctx, metav1.ListOptions{LabelSelector: application.EnrolmentLabel})
	if err != nil {
		return nil, err
	}
	clusters := sets.Set[string]{}
	for i := range list.Items {
		clusters.Insert(list.Items[i].Labels[application.EnrolmentLabel])
	}
	return sets.List(clusters), nil
}

// remain is an Application that blocks an uninstall.
type remain struct {
	apps.Item

	// stuck is why its deletion would not end, and the remedy; "" if it would.
	stuck string
}

// remains has what blocks a clean uninstall.
type remains struct {
	applications []remain
	// free are those that no agent holds: they go with their namespaces, or stay as
	// ConfigMaps.
	free     []string
	clusters []string
}

func (r remains) isClean() bool { return len(r.applications) == 0 && len(r.clusters) == 0 }

func remainsOf(items []apps.Item, clusters []string, beats apps.Heartbeats, now time.Time) remains {
	r := remains{clusters: clusters}
	for _, i := range items {
		if !slices.ContainsFunc(i.Stored.Finalizers, application.IsOurFinalizer) {
			r.free = append(r.free, i.Key())
			continue
		}
		r.applications = append(r.applications, remain{i, stuckBy(i, beats, now)})
	}
	return r
}

func stuckBy(i apps.Item, beats apps.Heartbeats, now time.Time) string {
	given := application.GivenUp(i.Stored, i.IsDeleted())
	for _, cluster := range application.HoldersOf(i.Stored) {
		if !slices.Contains(i.Stored.Finalizers, application.Finalizer(cluster)) || slices.Contains(given, cluster) {
			continue
		}
		if silence := beats.Silence(cluster, now); silence != "" {
			first := ""
			if !i.IsDeleted() && cluster == application.ClusterOf(i.Stored) {
				first = "delete the Application, and then " // the objects of an Application that is not deleted cannot be given up
			}
			return fmt.Sprintf("%s, or, if it is lost, %sleave what it has there: annotation %s=%s", silence, first, application.ForceDeleteAnnotation, cluster)
		}
	}
	if others := slices.DeleteFunc(slices.Clone(i.Stored.Finalizers), application.IsOurFinalizer); len(others) > 0 {
		return "finalizers of other controllers block it: " + strings.Join(others, ", ")
	}
	if i.App != nil && i.App.Status.State == application.StateDegraded && i.IsDeleted() {
		return "its shutdown was given up: see kubectl krake describe " + i.Stored.Name + " --namespace " + i.Stored.Namespace
	}
	return ""
}

func (r remain) word() env.Cell {
	switch {
	case r.stuck != "" && r.IsDeleted():
		return env.Cell{Text: "stuck", Colour: env.Red}
	case r.stuck != "":
		return env.Cell{Text: "would be stuck", Colour: env.Red}
	case r.IsDeleted():
		return env.Cell{Text: "under way", Colour: env.Yellow}
	}
	return env.Cell{Text: "to come", Colour: env.Yellow}
}

func (r remains) print(out io.Writer, p env.Painter) error {
	free := ""
	if len(r.free) > 0 {
		free = fmt.Sprintf("No agent holds %s: they stay as ConfigMaps.\n", strings.Join(r.free, ", "))
	}
	if r.isClean() {
		fmt.Fprintln(out, "Nothing is in the way: no agent holds an Application, and no cluster is enrolled.")
		fmt.Fprintln(out, free+"To uninstall:", deleteInstallation)
		return nil
	}
	if err := r.printHeld(out, p); err != nil {
		return err
	}
	if len(r.clusters) > 0 {
		fmt.Fprintf(out, "%s enrolled: %s\n\n", env.Counted(len(r.clusters), "cluster is", "clusters are"), strings.Join(r.clusters, ", "))
	}
	fmt.Fprintln(out, free+"In this order:")
	for number, step := range r.steps() {
		fmt.Fprintf(out, "%3d. %s\n", number+1, lens.Visible(step))
	}
	return nil
}

func (r remains) printHeld(out io.Writer, p env.Painter) error {
	if len(r.applications) == 0 {
		return nil
	}
	fmt.Fprintf(out, "%s by agents, which have to run until that is over:\n\n", env.Counted(len(r.applications), "Application is held", "Applications are held"))
	rows := [][]env.Cell{env.TextCells("NAMESPACE", "NAME", "CLUSTERS", "DELETION", "WHY")}
	for _, a := range r.applications {
		row := env.TextCells(a.Stored.Namespace, a.Stored.Name, strings.Join(application.HoldersOf(a.Stored), ","))
		rows = append(rows, append(row, a.word(), env.Cell{Text: a.stuck}))
	}
	if err := env.NewTable(out, p).Print(rows...); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return nil
}

const deleteInstallation = "kubectl delete -k with the folder that was applied, as manifests/overlays/default"

// steps returns the steps of a clean uninstall, in their order.
func (r remains) steps() []string {
	var fronts, stuck, live []string
	for _, a := range r.applications {
		from := a.Stored.Annotations[application.GeneratedFromAnnotation] // of a front end, as Habitat/shop
		if a.stuck != "" {
			stuck = append(stuck, a.Key())
		}
		switch {
		case from != "":
			kind, name, _ := strings.Cut(from, "/")
			fronts = append(fronts, fmt.Sprintf("kubectl delete %s %s --namespace %s   # or Application %s is made again",
				strings.ToLower(kind), name, a.Stored.Namespace, a.Stored.Name))
		case !a.IsDeleted():
			live = append(live, fmt.Sprintf("kubectl delete configmap %s --namespace %s", a.Stored.Name, a.Stored.Namespace))
		}
	}
	var steps []string
	if len(stuck) > 0 {
		steps = append(steps, "mend what has a reason above, or it waits for ever: "+strings.Join(stuck, ", "))
	}
	steps = append(append(steps, fronts...), live...)
	if len(r.applications) > 0 {
		steps = append(steps, "wait until kubectl krake uninstall --check says that none is held")
	}
	for _, cluster := range r.clusters {
		steps = append(steps, fmt.Sprintf("kubectl krake remove %s, and on that cluster kubectl delete -k with the folder agent of its enrolment", cluster))
	}
	return append(steps, deleteInstallation)
}
