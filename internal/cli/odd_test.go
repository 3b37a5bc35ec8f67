package cli

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
)

func TestOddApplications(t *testing.T) { checkOdd(t, printAll) }

// printAll prints all information about an Application.
func printAll(e *environment, cm *corev1.ConfigMap) error {
	i := itemOf(cm)
	now := e.now()
	table := newTable(e.Out, painter{})
	for _, output := range []string{asTable, asWide} {
		o := getOptions{output: outputFlag{value: output}}
		if err := table.print(o.row(overviewOf(i, heartbeats{read: true}, now), now)); err != nil {
			return err
		}
	}
	for _, format := range []string{asJSON, asYAML} {
		if err := printDocument(e.Out, format, documentOf(i, heartbeats{}, now)); err != nil {
			return err
		}
	}
	if err := printDescription(e.Out, description{item: i, now: now}, painter{}); err != nil {
		return err
	}
	if i.app == nil {
		return nil
	}
	for _, wide := range []bool{false, true} {
		if err := table.print(historyRows(i.app.Status.Drifts, i.stored.Namespace, wide, now)...); err != nil {
			return err
		}
	}
	return printObjects(e, i)
}

// printObjects prints all information about its objects, on the cluster or not.
func printObjects(e *environment, i item) error {
	expected, err := expect(i.app, plan.NoTypes)
	if err != nil {
		return nil //nolint:nilerr // what is refused has no objects
	}
	for _, object := range expected {
		for _, live := range []map[string]any{nil, object.Manifest, {"metadata": map[string]any{"name": "x"}, "kind": "x", "apiVersion": "v1"}} {
			c, err := compare(i.app, object, live, false)
			if err != nil {
				return err
			}
			fmt.Fprint(e.Out, lens.Visible(c.String()))
			if err := printBlames(e.Out, []lens.Object{lens.Compare(i.app, object, live, false)}, true, e.now()); err != nil {
				return err
			}
		}
	}
	for _, leaves := range leaving(i.app, expected) {
		fmt.Fprintln(e.Out, lens.Visible(leaves.String()))
	}
	for _, explained := range explanationsOf(i.app, expected, lens.PathOf("spec")) {
		fmt.Fprintln(e.Out, oneLine(explained.String()))
	}
	return nil
}
