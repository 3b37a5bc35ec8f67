package installation

import (
	"context"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// habitatAccount is the ServiceAccount, and the Deployment, of the Habitat controllers.
const habitatAccount = "krake-habitat"

// StartHabitat starts the stopped processes with the Habitat controllers, all at once,
// and waits until they are ready. Each has its own token, and the flags of the applied
// Deployment.
func (i *Installation) StartHabitat(ctx context.Context) error {
	return startStopped(ctx, i.habitats, i.startHabitat, func(*agent) error { return nil })
}

func (i *Installation) startHabitat(ctx context.Context, h *agent) error {
	kubeconfig, err := i.identify(ctx, h, application.SystemNamespace, habitatAccount)
	if err != nil {
		return err
	}
	h.command, err = i.habitatCommand(ctx, h.name, kubeconfig, "--metrics-bind-address="+h.metrics)
	return err
}

// habitatCommand starts a process with the flags of the Deployment, except those that
// are replaced.
func (i *Installation) habitatCommand(ctx context.Context, name, kubeconfig string, more ...string) (*command, error) {
	arguments, err := argumentsOf(ctx, i.cluster, application.SystemNamespace, habitatAccount)
	if err != nil {
		return nil, err
	}
	more = slices.Concat(more, i.options.HabitatArgs)
	arguments = slices.DeleteFunc(arguments, func(argument string) bool { return isReplaced(argument, more) })
	return i.start("habitat", name, slices.Concat(arguments, []string{"--kubeconfig", kubeconfig}, more)...)
}

// isReplaced reports whether others have the flag of an argument: a list would be added
// to.
func isReplaced(argument string, others []string) bool {
	name, _, _ := strings.Cut(argument, "=")
	return slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(other, name+"=") })
}

// StopHabitat stops the processes of these indices, or all, as a Deployment does: by
// SIGTERM.
func (i *Installation) StopHabitat(indices ...int) error {
	return i.endHabitats(indices, (*cluster.Process).Stop)
}

// KillHabitat kills the processes of these indices, or all (SIGKILL).
func (i *Installation) KillHabitat(indices ...int) error {
	return i.endHabitats(indices, (*cluster.Process).Kill)
}

func (i *Installation) endHabitats(indices []int, end func(*cluster.Process) error) error {
	return endAll(i.habitats, indices, func(h *agent) error { return end(h.command.process) })
}

// HabitatController returns a process with the Habitat controllers, or nil while it is stopped.
func (i *Installation) HabitatController(index int) *cluster.Process {
	return i.habitats[index].process()
}

// HabitatCredential identifies the process of this index in the audit log, as
// [Installation.AgentCredential] does.
func (i *Installation) HabitatCredential(index int) string { return i.habitats[index].credential }

// HabitatKubeconfig writes a kubeconfig file for a process with the Habitat controllers.
func (i *Installation) HabitatKubeconfig(ctx context.Context) (string, error) {
	return i.kubeconfig(ctx, application.SystemNamespace, habitatAccount)
}

// HabitatProcess is a process of [Installation.RunHabitat].
type HabitatProcess struct{ command *command }

// WaitReady waits until the process reports that it is ready.
func (p HabitatProcess) WaitReady(ctx context.Context) error { return p.command.waitReady(ctx) }

// Process returns the process.
func (p HabitatProcess) Process() *cluster.Process { return p.command.process }

// RunHabitat starts one more process with the Habitat controllers, under that name, and
// does not wait for it. It connects as the kubeconfig says, serves no metrics, and uses
// no Lease: if it is killed, its successor acts at once.
func (i *Installation) RunHabitat(ctx context.Context, name, kubeconfig string, arguments ...string) (HabitatProcess, error) {
	arguments = append([]string{"--metrics-bind-address=0", "--leader-elect=false"}, arguments...)
	command, err := i.habitatCommand(ctx, name, kubeconfig, arguments...)
	return HabitatProcess{command}, err
}
