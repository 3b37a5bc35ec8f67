package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

func newRenderCommand(e *environment) *cobra.Command {
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
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return r.run(command.Context(), e) },
	}
	command.Flags().StringVarP(&r.filename, "filename", "f", "", "file with Applications, or a manifest, - for the standard input")
	command.Flags().StringVar(&r.observerSchema, "observer-schema", "", "file with the observer schemas of a manifest")
	command.Flags().StringVar(&r.name, "name", "", "name of the Application that is made of a manifest (default: that of the file)")
	r.output.addTo(command, asYAML, asJSON)
	return command
}

type rendering struct {
	filename, observerSchema, name string
	output                         outputFlag
}

func (r rendering) run(ctx context.Context, e *environment) error {
	drafts, err := r.drafts(e)
	if err != nil {
		return err
	}
	var failures []error
	printed := 0
	for _, draft := range drafts {
		if err := draft.place(e.hub); err != nil {
			return err
		}
		if err := draft.tell(e.ErrOut, mutate.PrepareForCreate(ctx.Err, draft.cm)); err != nil {
			failures = append(failures, err)
			continue
		}
		if printed++; printed > 1 && r.output.value == asYAML {
			fmt.Fprintln(e.Out, "---")
		}
		if err := printDocument(e.Out, r.output.value, draft.cm); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

func (r rendering) drafts(e *environment) ([]draft, error) {
	if r.filename == "" {
		return nil, errors.New("nothing to render: name a file by -f")
	}
	file, err := readFile(e.In, r.filename)
	if err != nil {
		return nil, err
	}
	if file.isApplications() {
		if r.observerSchema != "" || r.name != "" {
			return nil, fmt.Errorf("%s has an Application, which has its own name and observer schema: leave out --name and --observer-schema", file.name)
		}
		drafts, leftOut, err := file.applications()
		for _, other := range leftOut {
			fmt.Fprintln(e.ErrOut, oneLine(other))
		}
		return drafts, err
	}
	d := draftOf(r.name, file)
	if r.observerSchema != "" {
		observerSchema, err := readFile(e.In, r.observerSchema)
		if err != nil {
			return nil, err
		}
		d.set(application.ObserverSchemaKey, observerSchema)
	}
	if values, err := manifest.Decode(file.text); err == nil && len(values) == 0 {
		return nil, fmt.Errorf("%s has no resource: name a file with Applications, or with a manifest", file.name)
	}
	if d.cm.Name == "" {
		d.cm.Name = strings.TrimSuffix(filepath.Base(file.name), filepath.Ext(file.name))
	}
	return []draft{d}, application.CompressManifest(d.cm)
}
