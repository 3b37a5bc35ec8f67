package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

type schemaFlags struct {
	propose               bool
	filename, path, named string
	output                env.Output
}

func newSchemaCommand(e *env.Environment) *cobra.Command {
	var flags schemaFlags
	command := &cobra.Command{
		Use:               "schema (NAME | --explain PATH NAME | --propose KIND/NAME | --propose -f FILE)",
		ValidArgsFunction: apps.CompleteNames(e),
		Short:             "Show the observer schemas of an Application, propose one, or explain why a field is observed",
		Long: `Show the observer schemas of an Application that are in effect: the user's, and a default
one for each other resource of its manifest.

With --explain, explain why a field of its objects is or is not observed.

With --propose, print an observer schema for an object on the cluster. It leaves out
fields that other managers than the author write, and fields that only the server sets,
with the reasons as comments. The author is the manager that has set most of the fields.
For an object that was applied, it observes the applied fields. For any other object, the
command asks the API server which fields are defaults, with dry runs that create nothing.
That takes the right to create such an object. With -f, it observes the fields of the
resources of a manifest, except those that others write to their objects.`,
		Example: `  # What is observed?
  kubectl krake schema web

  # Why are the replicas not observed?
  kubectl krake schema web --explain spec.replicas

  # An observer schema of an existing object
  kubectl krake schema --propose deployment/web`,
		Args: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 1 {
				return env.One("Application, or one object")(command, arguments)
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return flags.run(command.Context(), e, arguments)
		},
	}
	command.Flags().BoolVar(&flags.propose, "propose", false, "propose an observer schema of an object, as deployment/web, or of a manifest")
	command.Flags().StringVarP(&flags.filename, "filename", "f", "", "manifest to propose observer schemas of, - for the standard input")
	command.Flags().StringVar(&flags.path, "explain", "", "field to explain, as spec.ports[0].nodePort")
	command.Flags().StringVar(&flags.named, "object", "", "with --explain, explain one object only, as deployment/web")
	flags.output.AddTo(command, env.AsYAML, env.AsJSON)
	e.Target.AddFlags(command.Flags())
	return command
}

func (f schemaFlags) run(ctx context.Context, e *env.Environment, arguments []string) error {
	one := len(arguments) == 1
	switch {
	case f.propose && f.path != "":
		return errors.New("--propose and --explain exclude each other: use one of them")
	case !f.propose && f.filename != "":
		return errors.New("-f names a manifest to propose a schema of: add --propose")
	case f.propose && one == (f.filename != ""):
		return errors.New("nothing to propose a schema for: name an object as KIND/NAME, or a manifest by -f, and not both")
	case (f.propose || f.path != "") && f.output.Value == env.AsJSON:
		return errors.New("--propose and --explain print comments and sentences, which JSON cannot have: leave out -o json")
	case f.propose && one:
		return proposeOf(ctx, e, arguments[0])
	case f.propose:
		return proposeFor(ctx, e, f.filename)
	case !one:
		return errors.New("the Application is missing: name it")
	case f.path != "":
		return explain(ctx, e, arguments[0], f.path, f.named)
	}
	return printSchemas(ctx, e, arguments[0], f.output.Value)
}

func printSchemas(ctx context.Context, e *env.Environment, name, format string) error {
	stored, err := apps.GetReadable(ctx, e, name)
	if err != nil {
		return err
	}
	desired, refusals := mutate.Desire(stored.App.Spec, nil)
	if len(refusals) > 0 {
		return fmt.Errorf("the Application %s is refused: %s", stored.App.NamespacedName, mutate.Summary(refusals))
	}
	documents := desired.Mangled.Documents()
	if format == env.AsJSON {
		return env.PrintDocument(e.Out, format, documents)
	}
	for i, document := range documents {
		if i > 0 {
			fmt.Fprintln(e.Out, "---")
		}
		if err := env.PrintDocument(e.Out, format, document); err != nil {
			return err
		}
	}
	return nil
}

func explain(ctx context.Context, e *env.Environment, name, text, named string) error {
	path, err := view.ParsePath(text)
	if err != nil {
		return err
	}
	app, expected, err := apps.GetExpected(ctx, e, name)
	if err != nil {
		return err
	}
	wanted, err := apps.Chosen(expected, named)
	if err != nil {
		return err
	}
	for _, explanation := range view.Explain(app, expected, path) {
		if slices.ContainsFunc(wanted, func(one plan.Expected) bool { return one.ID == explanation.Expected.ID }) {
			fmt.Fprintln(e.Out, env.OneLine(explanation.String()))
		}
	}
	return nil
}

func proposeOf(ctx context.Context, e *env.Environment, named string) error {
	kind, name, err := env.KindName(named)
	if err != nil {
		return err
	}
	objects, namespace, err := clusterOf(e)
	if err != nil {
		return err
	}
	mapping, err := objects.MappingOf(kind)
	if err != nil {
		return err
	}
	id := manifest.ID{Name: name}
	id.APIVersion, id.Kind = mapping.GroupVersionKind.ToAPIVersionAndKind()
	live, err := objects.Read(ctx, mapping, id, namespace)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("there is no %s %s in namespace %s: name an existing one, or propose from a manifest, by -f", mapping.GroupVersionKind.Kind, name, namespace)
	}
	types := objects.Types(id)
	proposal, err := propose(lastApplied(live), live, nil, types)
	if err == nil {
		proposal, err = withoutDefaults(proposal, live, trialIn(ctx, objects, mapping, namespace), types)
	}
	if err != nil {
		return err
	}
	return printProposal(e.Out, proposal)
}

func proposeFor(ctx context.Context, e *env.Environment, filename string) error {
	file, err := draft.ReadFile(e.In, filename)
	if err != nil {
		return err
	}
	resources, err := manifest.Decode(file.Text)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	objects, namespace, err := clusterOf(e)
	if err != nil {
		return err
	}
	for i, value := range resources {
		resource, _ := value.(map[string]any)
		id, err := manifest.Identify(resource)
		if err != nil {
			return fmt.Errorf("%s: resource %d: %w", file.Name, i, err)
		}
		id.Namespace = cmp.Or(id.Namespace, namespace)
		live, err := objects.Live(ctx, id)
		if err != nil {
			return err
		}
		if live == nil {
			fmt.Fprintln(e.ErrOut, env.OneLine(id.String()+": it is not on the cluster, so it is unknown which fields others write"))
		}
		proposal, err := propose(resource, live, nil, objects.Types(id))
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(e.Out, "---")
		}
		if err := printProposal(e.Out, proposal); err != nil {
			return err
		}
	}
	return nil
}

func printProposal(out io.Writer, proposal proposal) error {
	text, err := proposal.text()
	if err == nil {
		_, err = fmt.Fprintln(out, strings.TrimRight(text, "\n"))
	}
	return err
}

// clusterOf connects to the cluster with objects of no Application, and returns the namespace
// that the flags select.
func clusterOf(e *env.Environment) (env.Objects, string, error) {
	_, namespace, err := e.Applications()
	if err != nil {
		return env.Objects{}, "", err
	}
	found, err := e.ObjectsOf(application.LocalCluster)
	return found, namespace, err
}
