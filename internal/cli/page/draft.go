package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Draft implements [ui.Source].
func (s *source) Draft(ctx context.Context, ref ui.Ref, toggles []lens.Toggle) (ui.Draft, error) {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return ui.Draft{}, err
	}
	if runs, _ := plan.RunsPods(ref.Object.Kind); runs && len(i.App.Spec.Hooks.Enabled()) > 0 {
		return ui.Draft{}, errors.New("the hooks of the Application add fields to this object, so that the page cannot tell which of them the observer schema has: edit it by hand")
	}
	text, err := schemaAfter(i.App, i.expected, ref.Object, toggles)
	if err != nil {
		return ui.Draft{}, err
	}
	after := i.Stored.DeepCopy()
	if after.Data == nil {
		after.Data = map[string]string{}
	}
	after.Data[application.ObserverSchemaKey] = text
	var said bytes.Buffer
	err = draft.Admit(ctx, s.quietly(&said), draft.Draft{ConfigMap: after, Places: draft.Places{File: application.ObserverSchemaKey, Parts: map[string]draft.Part{
		application.ObserverSchemaKey: {File: application.ObserverSchemaKey, Text: text},
	}}}, i.Stored)
	made := ui.Draft{Schema: text, Command: patchCommand(i.Stored, text, s.connection()), Said: linesIn(said.String())}
	if lens.Visible(text) != text {
		made.Command = "# The schema has characters that cannot be shown: edit the file."
	}
	if err != nil {
		made.Said = append(made.Said, err.Error())
	}
	return made, nil
}

// quietly returns an environment that prints into a buffer.
func (s *source) quietly(out io.Writer) *env.Environment {
	e := *s.Environment
	e.Out, e.ErrOut = out, out
	return &e
}

func linesIn(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
}

// schemaAfter returns the observer schema of an Application after fields of one object are toggled. The
// schemas of other objects stay as they are written. That of the object loses its comments.
func schemaAfter(app *application.Application, expected []plan.Expected, object manifest.ID, toggles []lens.Toggle) (string, error) {
	at, err := indexOf(app, expected, object)
	if err != nil {
		return "", err
	}
	own := view.Explain(app, expected, nil)[at].Custom
	document, err := schemaDocument(own, expected[at])
	if err != nil {
		return "", err
	}
	edited, err := env.YAML(lens.Edit(document, toggles))
	if err != nil {
		return "", err
	}
	return withDocument(app.Spec.ObserverSchema, own, edited)
}

// schemaDocument returns the observer schema of one object: the user's own, or the default one.
func schemaDocument(own draft.Located, expected plan.Expected) (map[string]any, error) {
	if own.Tree != nil {
		document, _ := own.Value.(map[string]any)
		return document, nil
	}
	observed, err := schema.Default(expected.Manifest)
	if err != nil {
		return nil, err
	}
	observed, _ = observed.WithoutServerOwned()
	return observed.Document(), nil
}

// withDocument returns a text of observer schemas with one of them replaced, or added if it is not there.
func withDocument(text string, own draft.Located, edited string) (string, error) {
	var texts []string
	isReplaced := false
	for _, part := range compose.Documents([]byte(text)) {
		switch {
		case len(bytes.TrimSpace(part.Text)) == 0:
		case own.Tree != nil && part.Tree != nil && part.Tree.Items == nil && part.Before+part.Tree.Line == own.LineInFile():
			isReplaced = true
			texts = append(texts, edited)
		default:
			texts = append(texts, strings.TrimRight(string(part.Text), "\n")+"\n")
		}
	}
	if own.Tree != nil && !isReplaced {
		return "", errors.New("the observer schemas are in one YAML list: write them as documents, with --- between them, to edit one of them here")
	}
	if own.Tree == nil {
		texts = append(texts, edited)
	}
	return strings.ReplaceAll(strings.Join(texts, "---\n"), "\r\n", "\n"), nil
}

// connection returns the flags of kubectl with which the command was started, for a shell.
func (s *source) connection() string {
	var flags strings.Builder
	for _, flag := range []struct {
		name  string
		value *string
	}{{"kubeconfig", s.Hub.KubeConfig}, {"context", s.Hub.Context}, {"cluster", s.Hub.ClusterName}, {"user", s.Hub.AuthInfoName}, {"server", s.Hub.APIServer}, {"as", s.Hub.Impersonate}} {
		if value := ptr.Deref(flag.value, ""); value != "" {
			fmt.Fprintf(&flags, " --%s '%s'", flag.name, strings.ReplaceAll(value, "'", `'\''`))
		}
	}
	for _, group := range ptr.Deref(s.Hub.ImpersonateGroup, nil) {
		fmt.Fprintf(&flags, " --as-group '%s'", strings.ReplaceAll(group, "'", `'\''`))
	}
	return flags.String()
}

// patchCommand returns the command that sets the observer schema, on the cluster that the flags name.
func patchCommand(cm *corev1.ConfigMap, text, flags string) string {
	end := "EOF"
	for strings.Contains(text, end) {
		end += "_"
	}
	patch, err := env.YAML(map[string]any{"data": map[string]any{application.ObserverSchemaKey: text}})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("kubectl patch configmap %s --namespace %s%s --type merge --patch-file /dev/stdin <<'%s'\n%s%s\n", cm.Name, cm.Namespace, flags, end, patch, end)
}
