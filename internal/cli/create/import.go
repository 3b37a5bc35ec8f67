package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

func newImportCommand(e *env.Environment) *cobra.Command {
	i := importation{creation: creation{Environment: e, skip: true}}
	command := &cobra.Command{
		Use:   "import NAME (KIND/NAME... | -l SELECTOR | --all | --from FILE)",
		Short: "Create an Application from running objects, which takes them over without a change",
		Long: `Create an Application from objects that run in a namespace. The agent adopts them: it writes
its label and its annotations to them, and nothing else.

The manifest has the fields that the author of an object has set, with their present values.
The observer schema leaves out what others write, what the API server fills in, and what only
the server sets, with the reasons as comments: see kubectl krake schema --propose.

Some objects are left out: those with a controller, as the Pods of a Deployment, those of
another Application, those that the control plane has created, and those that cannot belong to
an Application. The command prints the reasons. It does not read Secrets.

With --from, import the objects of an Application of Argo CD, a HelmRelease of Flux or a
Bundle of Fleet. The observer schema leaves out what its rules ignore. The command prints what
an observer schema cannot say.

When you delete the Application, the objects stay, without the label and the annotations.`,
		Example: `  # Everything in a namespace
  kubectl krake import shop --all -n shop

  # The objects of one program, as a file for Git
  kubectl krake import web -l app.kubernetes.io/name=web --dry-run=client -o yaml > web.yaml

  # Two objects
  kubectl krake import web deployment/web service/web

  # What Argo CD manages, with its ignore rules
  kubectl get application shop -n argocd -o yaml | kubectl krake import shop --from -`,
		Args: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return env.One("Application")(command, arguments)
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			i.creation.name, i.names = arguments[0], arguments[1:]
			return i.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&i.selector, "selector", "l", "", "import the objects with these labels")
	flags.BoolVar(&i.all, "all", false, "import all objects of the namespace")
	flags.StringVar(&i.file, "from", "", "import the objects of the Argo CD Application, Flux HelmRelease or Fleet Bundle in this file, - for the standard input")
	i.creation.addFlags(command)
	e.Target.AddFlags(flags)
	return command
}

// importation is a run of the command import.
type importation struct {
	creation creation
	names    []string
	selector string
	all      bool
	file     string
	left     []leftObjects
	// from is nil without a file.
	from *origin
}

func (i *importation) run(ctx context.Context) error {
	c := &i.creation
	chosen := 0
	for _, by := range []bool{len(i.names) > 0, i.selector != "", i.all, i.file != ""} {
		if by {
			chosen++
		}
	}
	if chosen != 1 {
		return errors.New("choose the objects in one way: by KIND/NAME, by --selector, by --from, or --all of the namespace")
	}
	if err := c.checkDryRun(); err != nil {
		return err
	}
	var err error
	if c.namespace, _, err = c.Hub.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	if i.file != "" {
		if i.from, c.namespace, err = c.readOrigin(i.file); err != nil {
			return err
		}
	}
	cluster := application.LocalCluster
	if c.cluster != "" {
		cluster = c.cluster
	}
	objects, err := c.ObjectsOf(cluster)
	if err != nil {
		return err
	}
	all, err := i.find(ctx, objects)
	if err != nil {
		return err
	}
	parts, err := i.parts(ctx, objects, all)
	if err != nil {
		return err
	}
	i.from.printUntranslated(c.ErrOut)
	if err := c.create(ctx, parts); err != nil {
		return err
	}
	i.from.printAdvice(c.ErrOut)
	return nil
}

// find returns the objects that the user chooses.
func (i *importation) find(ctx context.Context, objects env.Objects) ([]found, error) {
	if len(i.names) > 0 {
		return named(ctx, objects, i.names, i.creation.namespace)
	}
	all, unread, err := selected(ctx, objects, i.selector, i.creation.namespace)
	for _, kind := range unread {
		i.leave(kind, "you may not list this kind")
	}
	if err == nil {
		all, err = i.from.managed(all, i.creation.namespace)
	}
	return all, err
}

// leave leaves out an object or a kind.
func (i *importation) leave(name, reason string) {
	at := slices.IndexFunc(i.left, func(l leftObjects) bool { return l.reason == reason })
	if at < 0 {
		at = len(i.left)
		i.left = append(i.left, leftObjects{reason: reason})
	}
	i.left[at].names = append(i.left[at].names, name)
}

// leftObjects are the objects that are left out for one reason.
type leftObjects struct {
	reason string
	names  []string
}

// namesShown is how many objects a message names.
const namesShown = 5

func (l leftObjects) String() string {
	names, further := l.names, ""
	if len(names) > namesShown {
		names, further = names[:namesShown-1], fmt.Sprintf(" and %d more", len(l.names)-namesShown+1)
	}
	return fmt.Sprintf("left out, because %s: %s%s", l.reason, strings.Join(names, ", "), further)
}

// parts returns the manifests and observer schemas of the objects. It prints which it leaves out.
func (i *importation) parts(ctx context.Context, objects env.Objects, all []found) ([]compose.Part, error) {
	c := &i.creation
	var parts []compose.Part
	for _, object := range all {
		part, reason, err := i.part(ctx, objects, object)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", object.name(), err)
		case reason == "":
			parts = append(parts, part)
			c.imported = append(c.imported, object)
		case len(i.names) > 0:
			return nil, fmt.Errorf("%s cannot be imported: %s", object.name(), reason)
		default:
			i.leave(object.name(), reason)
		}
	}
	for _, left := range i.left {
		fmt.Fprintln(c.ErrOut, env.OneLine(left.String()))
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("namespace %s has no object to import: choose others", c.namespace)
	}
	return parts, nil
}

// part returns the manifest and the observer schema of an object, or why it is left out.
func (i *importation) part(ctx context.Context, objects env.Objects, object found) (part compose.Part, reason string, err error) {
	if reason := cmp.Or(object.exclusion(), i.from.exclusion(object)); reason != "" {
		return part, reason, nil
	}
	try := trialIn(ctx, objects, object.mapping, i.creation.namespace)
	types := objects.Types(object.id())
	resource, proposed, err := importOf(object.Object, try, types)
	switch {
	case errors.Is(err, errOfControlPlane):
		return part, err.Error(), nil
	case errors.Is(err, errNoAuthor):
		return part, "no client has set a field of it", nil
	}
	if err == nil {
		proposed, err = i.from.translate(ctx, proposed, resource, object, types)
	}
	if err != nil {
		return part, "", err
	}
	text, err := env.YAML(resource)
	if err != nil {
		return part, "", err
	}
	observerSchema, err := proposed.text()
	part.Object = compose.Object{ID: object.id(), File: object.name(), Text: []byte(text), Value: resource}
	part.Schema = []byte(observerSchema)
	return part, "", err
}

// changesNothing returns an error if the agent would change more of the imported objects than its
// marks.
func (c *creation) changesNothing(ctx context.Context, app composed, connect func(cluster string) (env.Objects, error)) error {
	if c.imported == nil {
		return nil
	}
	cm := app.ConfigMap.DeepCopy()
	mutate.PrepareForCreate(ctx.Err, cm)
	read, err := application.Read(cm)
	if err != nil {
		return err
	}
	expected, err := apps.Expect(read, env.TypesOn(connect, read.Cluster))
	if err != nil {
		return err
	}
	var failures []error
	for _, e := range expected {
		at := slices.IndexFunc(c.imported, func(f found) bool { return f.id() == e.ID })
		if at < 0 {
			failures = append(failures, fmt.Errorf("%s is none of the imported objects: leave out what it was made of", e.ID))
			continue
		}
		for _, d := range e.Schema.Compare(e.Desired, c.imported[at].Object) {
			if !isMark(d.Path) {
				failures = append(failures, fmt.Errorf("%s: %s differs from the manifest that was made of it: leave the object out, or create the Application from your manifests, by kubectl krake create", c.imported[at].name(), d.Path))
				break
			}
		}
	}
	return errors.Join(failures...)
}

// isMark reports whether a path is that of a label or an annotation of the agent.
func isMark(path schema.Path) bool {
	return path[0].Field == "metadata" && manifest.IsReserved(path[len(path)-1].Field)
}
