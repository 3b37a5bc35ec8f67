// Package create has the commands that prepare Applications: create and import make them of manifests and of running objects,
// schema shows and proposes observer schemas, render shows what the webhook would make of a file, and account creates the service
// account that the agent writes as.
package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// The presets of the flag --observe. Any other value is a file.
const (
	observeDeclared = "declared"
	observeMinimal  = "minimal"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newAccountCommand(e), newCreateCommand(e), newImportCommand(e), newRenderCommand(e), newSchemaCommand(e)}
}

func newCreateCommand(e *env.Environment) *cobra.Command {
	c := creation{Environment: e}
	command := &cobra.Command{
		Use:   "create NAME (-f FILE... | -k FOLDER)",
		Short: "Create an Application from manifests: files, folders, the output of helm template, a kustomization",
		Long: fmt.Sprintf(`Create an Application from manifests. The command reads what kubectl reads: files, folders,
the standard input, Lists, JSON, anchors. It asks the webhook with a dry run, and prints all
warnings and mistakes with their lines, before it writes anything.

Some objects cannot belong to an Application: Secrets with values, objects without a
namespace, and hooks of Helm. The command lists them, and creates nothing. With
--skip-unsupported it creates the Application without them. --only-unsupported prints them,
for kubectl apply, unless the other objects have mistakes. Helm's tests are always left out.

With --print-missing-rights an administrator sees which rights on the kinds of the objects the
agent lacks, as a ClusterRole for kubectl apply on the cluster of the objects.

The Application observes all fields of the manifests (--observe declared), or only images,
selectors, ports and replicas (--observe minimal), or the observer schemas of a file.

An Application has at most %d objects and %d MiB of text, which is stored compressed from
256 KiB on. The command splits more than that, in the order of the input, into the
Applications NAME-1, NAME-2 and so on.`, manifest.MaxResources, manifest.MaxBytes>>20),
		Example: `  # A chart
  helm template shop ./chart | kubectl krake create shop -f -

  # A folder, as a file for Git
  kubectl krake create shop -f k8s/ -R --dry-run=client -o yaml > shop.yaml

  # The objects that cannot belong to an Application, and then the others
  kubectl krake create shop -f all.yaml --only-unsupported | kubectl apply -f -
  kubectl krake create shop -f all.yaml --skip-unsupported`,
		Args: env.One("Application"),
		RunE: func(command *cobra.Command, arguments []string) error {
			c.name = arguments[0]
			return c.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringSliceVarP(&c.filenames, "filename", "f", nil, "files and folders with manifests, - for the standard input")
	flags.StringVarP(&c.kustomization, "kustomize", "k", "", "folder of a kustomization")
	flags.BoolVarP(&c.recursive, "recursive", "R", false, "also read the folders in a folder")
	flags.StringVar(&c.observe, "observe", observeDeclared, "what to observe: declared, minimal, or a file with observer schemas")
	flags.StringSliceVar(&c.valuesFrom, "values-from", nil, "SECRET=SOURCE: a Secret of the manifests gets the values of another one, which exists in the Application's namespace on the cluster")
	flags.BoolVar(&c.skip, "skip-unsupported", false, "leave out the objects that cannot belong to an Application")
	flags.BoolVar(&c.rights, "print-missing-rights", false, "print a ClusterRole with the rights that the agent lacks, and create nothing")
	flags.BoolVar(&c.only, "only-unsupported", false, "print the objects that cannot belong to an Application, and create nothing")
	command.MarkFlagsMutuallyExclusive("filename", "kustomize")
	command.MarkFlagsMutuallyExclusive("skip-unsupported", "only-unsupported", "print-missing-rights")
	c.addFlags(command)
	e.Target.AddFlags(flags)
	return command
}

// addFlags adds the flags of all commands that create Applications.
func (c *creation) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&c.cluster, "cluster", "", "cluster of the objects (default: that of the Application)")
	flags.StringVar(&c.mode, "mode", "", "mode of the Application: enforce, observe or suspend")
	c.dryRun.AddTo(command, "the webhook is not asked")
	c.output.AddTo(command, env.AsMessage, env.AsYAML, env.AsJSON)
}

func (c *creation) checkDryRun() error {
	if err := c.dryRun.Check(); err != nil {
		return err
	}
	if c.only && c.dryRun == env.DryRunClient {
		return errors.New("--dry-run=client: the webhook is not asked, and only the webhook knows which kinds have no namespace: " +
			"leave it out, because --only-unsupported creates nothing")
	}
	return nil
}

// creation is a run of the command.
type creation struct {
	*env.Environment

	name                   string
	filenames, valuesFrom  []string
	kustomization          string
	recursive              bool
	observe, cluster, mode string
	skip, only, rights     bool
	dryRun                 env.DryRun
	output                 env.Output
	namespace              string
	// values are the parsed valuesFrom.
	values []application.ValuesFrom
	// imported are the live objects that the Applications take over.
	imported []found
	// observerSchema is the file of --observe.
	observerSchema *draft.File
}

func (c *creation) run(ctx context.Context) error {
	if err := c.checkDryRun(); err != nil {
		return err
	}
	objects, err := c.read()
	if err != nil {
		return err
	}
	if c.namespace, err = c.namespaceOf(objects); err != nil {
		return err
	}
	if err := c.readValuesFrom(objects); err != nil {
		return err
	}
	if c.rights {
		return c.printMissingRights(ctx, objects)
	}
	parts, err := c.parts(objects)
	if err != nil {
		return err
	}
	return c.create(ctx, parts)
}

// create asks the webhook about the Applications of the parts, and creates them.
func (c *creation) create(ctx context.Context, parts []compose.Part) error {
	j, err := c.judge(ctx, parts)
	if err != nil {
		return err
	}
	if c.only {
		return c.printUnsupported(j)
	}
	if err := c.tell(j); err != nil {
		return err
	}
	for _, app := range j.apps {
		if err := c.changesNothing(ctx, app, c.ObjectsOf); err != nil {
			return err
		}
	}
	return c.write(ctx, j)
}

// readValuesFrom reads the flag --values-from.
func (c *creation) readValuesFrom(objects []compose.Object) error {
	if len(c.valuesFrom) == 0 {
		return nil
	}
	var err error
	if c.values, err = application.ParseValuesFrom(strings.Join(c.valuesFrom, ",")); err != nil {
		return fmt.Errorf("--values-from: %w", err)
	}
	for i, value := range c.values {
		if !slices.ContainsFunc(objects, func(object compose.Object) bool { return value.Fills(object.ID) }) {
			return fmt.Errorf("--values-from %s: %s: there is no Secret %s in it", c.valuesFrom[i], c.source(), value.Name)
		}
	}
	return nil
}

func (c *creation) read() ([]compose.Object, error) {
	var objects []compose.Object
	var err error
	switch {
	case c.kustomization != "":
		objects, err = compose.Kustomize(c.kustomization)
	case len(c.filenames) > 0:
		objects, err = compose.Read(c.In, c.filenames, c.recursive)
	default:
		return nil, errors.New("there are no manifests: name files or folders by -f, or a kustomization by -k")
	}
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is no object in it: name another file or folder", c.source())
	}
	return objects, err
}

// source is the input as the user names it.
func (c *creation) source() string {
	switch {
	case c.imported != nil:
		return "namespace " + c.namespace
	case c.kustomization != "":
		return c.kustomization
	}
	names := slices.Clone(c.filenames)
	if at := slices.Index(names, "-"); at >= 0 {
		names[at] = "stdin"
	}
	return strings.Join(names, ", ")
}

// namespaceOf returns the namespace of the Application: that of the flag, or the one that all
// objects name, or that of the context.
func (c *creation) namespaceOf(objects []compose.Object) (string, error) {
	namespace, _, err := c.Hub.ToRawKubeConfigLoader().Namespace()
	if err != nil || ptr.Deref(c.Hub.Namespace, "") != "" {
		return namespace, err
	}
	named := ""
	for _, object := range objects {
		switch {
		case object.Namespace == "" || object.Namespace == named:
		case named != "":
			return "", fmt.Errorf("%s: it is for namespace %s, and an object before it for namespace %s: "+
				"create an Application for each namespace, and name the namespace by -n", object.Place(), object.Namespace, named)
		default:
			named = object.Namespace
		}
	}
	return cmp.Or(named, namespace), nil
}

// write creates the Applications, unless it is a dry run, and prints them.
func (c *creation) write(ctx context.Context, j *judgement) error {
	if len(j.apps) > 1 {
		fmt.Fprintf(c.ErrOut, "An Application has at most %d objects and %d MiB. The objects are split in the order of the input:\n", manifest.MaxResources, manifest.MaxBytes>>20)
	}
	for i, app := range j.apps {
		cm := app.ConfigMap
		if c.dryRun != env.DryRunClient {
			created, err := c.send(ctx, j, app, c.dryRun)
			if err := errors.Join(j.Flush(c.ErrOut), err); err != nil {
				return err
			}
			cm = created
		}
		if err := c.print(i, cm, len(app.parts)); err != nil {
			return err
		}
	}
	return nil
}

func (c *creation) print(i int, cm *corev1.ConfigMap, objects int) error {
	if c.output.IsDocument() {
		if i > 0 && c.output.Value == env.AsYAML {
			fmt.Fprintln(c.Out, "---")
		}
		cm.APIVersion, cm.Kind, cm.ManagedFields = "v1", "ConfigMap", nil
		return env.PrintDocument(c.Out, c.output.Value, cm)
	}
	count := "1 object"
	if objects != 1 {
		count = fmt.Sprintf("%d objects", objects)
	}
	_, err := fmt.Fprintln(c.Out, env.OneLine(fmt.Sprintf("application %s/%s created, with %s%s", cm.Namespace, cm.Name, count, c.dryRun.Suffix())))
	return err
}

// printUnsupported prints the objects for kubectl apply. It prints none if there are mistakes: the
// webhook was not asked then, or may name more objects when they are mended.
func (c *creation) printUnsupported(j *judgement) error {
	if err := errors.Join(j.Flush(c.ErrOut), j.failed); err != nil {
		return err
	}
	if len(j.unsupported) == 0 {
		fmt.Fprintln(c.ErrOut, "All objects can belong to an Application.")
		return nil
	}
	for i, object := range j.unsupported {
		if i > 0 {
			fmt.Fprintln(c.Out, "---")
		}
		if _, err := fmt.Fprintln(c.Out, strings.Trim(string(object.Text), "\n")); err != nil {
			return err
		}
	}
	return nil
}
