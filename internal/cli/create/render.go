package create

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

func newRenderCommand(e *env.Environment) *cobra.Command {
	var r rendering
	command := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Show what the webhook makes of an Application, without a cluster",
		Long: `Show the ConfigMap that would be stored if the Applications of a file were created. The
command calls the same function as the webhook. It prints mistakes and warnings with their
lines. It does not check what only a cluster knows: its kinds, the objects that exist
already, and the rights of the user.

A file without Applications is read as a manifest. The command makes an Application of it,
with the observer schema of another file if you name one.

The exit status is 2 if the webhook would refuse anything.`,
		Example: `  # Is it right?
  kubectl krake render -f web.yaml

  # What is observed of these, and what is wrong with the schema?
  kubectl krake render -f manifest.yaml --observer-schema schema.yaml`,
		Args: env.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return r.run(command.Context(), e) },
	}
	command.Flags().StringVarP(&r.filename, "filename", "f", "", "file with Applications, or a manifest, - for the standard input")
	command.Flags().StringVar(&r.observerSchema, "observer-schema", "", "file with the observer schemas of a manifest")
	command.Flags().StringVar(&r.name, "name", "", "name of the Application that is made of a manifest (default: that of the file)")
	r.output.AddTo(command, env.AsYAML, env.AsJSON)
	return command
}

type rendering struct {
	filename, observerSchema, name string
	output                         env.Output
}

func (r rendering) run(ctx context.Context, e *env.Environment) error {
	drafts, err := r.drafts(e)
	if err != nil {
		return err
	}
	var failures []error
	printed := 0
	for _, draft := range drafts {
		if err := draft.Place(e.Hub); err != nil {
			return err
		}
		if err := draft.Tell(e.ErrOut, mutate.PrepareForCreate(ctx.Err, draft.ConfigMap)); err != nil {
			failures = append(failures, err)
			continue
		}
		if printed++; printed > 1 && r.output.Value == env.AsYAML {
			fmt.Fprintln(e.Out, "---")
		}
		if err := env.PrintDocument(e.Out, r.output.Value, draft.ConfigMap); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

func (r rendering) drafts(e *env.Environment) ([]draft.Draft, error) {
	if r.filename == "" {
		return nil, errors.New("nothing to render: name a file by -f")
	}
	file, err := draft.ReadFile(e.In, r.filename)
	if err != nil {
		return nil, err
	}
	if file.IsApplications() {
		if r.observerSchema != "" || r.name != "" {
			return nil, fmt.Errorf("%s has an Application, which has its own name and observer schema: leave out --name and --observer-schema", file.Name)
		}
		drafts, leftOut, err := file.Applications()
		for _, other := range leftOut {
			fmt.Fprintln(e.ErrOut, env.OneLine(other))
		}
		return drafts, err
	}
	d := draft.New(r.name, file)
	if r.observerSchema != "" {
		observerSchema, err := draft.ReadFile(e.In, r.observerSchema)
		if err != nil {
			return nil, err
		}
		d.Set(application.ObserverSchemaKey, observerSchema)
	}
	if values, err := manifest.Decode(file.Text); err == nil && len(values) == 0 {
		return nil, fmt.Errorf("%s has no resource: name a file with Applications, or with a manifest", file.Name)
	}
	if d.ConfigMap.Name == "" {
		d.ConfigMap.Name = strings.TrimSuffix(filepath.Base(file.Name), filepath.Ext(file.Name))
	}
	return []draft.Draft{d}, application.CompressManifest(d.ConfigMap)
}
