package inspect

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func TestOddApplications(t *testing.T) { clitest.CheckOdd(t, printAll) }

// printAll prints all information about an Application.
func printAll(e *env.Environment, cm *corev1.ConfigMap) error {
	i := apps.ItemOf(cm)
	now := e.Now()
	table := env.NewTable(e.Out, env.Painter{})
	for _, output := range []string{env.AsTable, env.AsWide} {
		o := getOptions{output: env.Output{Value: output}}
		if err := table.Print(o.row(view.OverviewOf(i, apps.Heartbeats{Read: true}, now), now)); err != nil {
			return err
		}
	}
	for _, format := range []string{env.AsJSON, env.AsYAML} {
		if err := env.PrintDocument(e.Out, format, documentOf(i, apps.Heartbeats{}, now)); err != nil {
			return err
		}
	}
	if err := printDescription(e.Out, view.Description{Item: i, Now: now}, env.Painter{}); err != nil {
		return err
	}
	if i.App == nil {
		return nil
	}
	for _, wide := range []bool{false, true} {
		if err := table.Print(historyRows(i.App.Status.Drifts, i.Stored.Namespace, wide, now)...); err != nil {
			return err
		}
	}
	return printObjects(e, i)
}

// printObjects prints all information about its objects, on the cluster or not.
func printObjects(e *env.Environment, i apps.Item) error {
	expected, err := apps.Expect(i.App, plan.NoTypes)
	if err != nil {
		return nil //nolint:nilerr // what is refused has no objects
	}
	for _, object := range expected {
		for _, live := range []map[string]any{nil, object.Manifest, {"metadata": map[string]any{"name": "x"}, "kind": "x", "apiVersion": "v1"}} {
			c, err := view.Compare(i.App, object, live, false)
			if err != nil {
				return err
			}
			fmt.Fprint(e.Out, lens.Visible(c.String()))
			if err := printBlames(e.Out, []lens.Object{lens.Compare(i.App, object, live, false)}, true, e.Now()); err != nil {
				return err
			}
		}
	}
	for _, leaves := range apps.Leaving(i.App, expected) {
		fmt.Fprintln(e.Out, lens.Visible(leaves.String()))
	}
	for _, explained := range view.Explain(i.App, expected, schema.FieldPath("spec")) {
		fmt.Fprintln(e.Out, env.OneLine(explained.String()))
	}
	return nil
}
