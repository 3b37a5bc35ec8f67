package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

func newBlameCommand(e *environment) *cobra.Command {
	var named string
	var output outputFlag
	command := &cobra.Command{
		Use:               "blame NAME",
		ValidArgsFunction: e.completeNames,
		Short:             "Show who has set each observed field of an Application's objects, and when",
		Long: `Show each observed field of an Application's objects: its value, the desired one, and
who has set it last, by the managedFields of the object. That is a hint and no proof. The
time is that of the manager's last write to any field of the object. The API server stores
no time for writes through the subresource scale. The removal of a field leaves no trace.

Fields that differ have a * in the column DRIFT. Values that the Application does not set,
and that were learned from the cluster, are marked as pinned. Values that are not learned
yet are marked as (to be pinned).

Values that may be secrets are shown as ***: see --show-private.`,
		Example: `  # Who has scaled it?
  kubectl krake blame web --object deployment/web`,
		Args: One("Application"),
		RunE: func(command *cobra.Command, names []string) error {
			blames, err := readBlames(command.Context(), e, names[0], named)
			if err != nil {
				return err
			}
			if output.isDocument() {
				return printDocument(e.Out, output.value, documentList[blamedObject]{documentVersion, "BlameList", "", blames})
			}
			return printBlames(e.Out, blames, output.value == asWide, e.now())
		},
	}
	command.Flags().StringVar(&named, "object", "", "show one object only, as deployment/web")
	output.addTo(command, asTable, asWide, asJSON, asYAML)
	e.addPrivateTo(command)
	e.target.addFlags(command.Flags())
	return command
}

type blamedObject struct {
	manifest.ID `json:",inline"`

	Missing bool           `json:"missing,omitempty"`
	Fields  []blamedField  `json:"fields,omitempty"`
	Lengths []blamedLength `json:"lengths,omitempty"`
}

// blamedField is an observed field with its last manager. Private values are hidden.
type blamedField struct {
	Path string `json:"path"`
	// Value and Desired are omitted if there is none.
	Value   any `json:"value,omitempty"`
	Desired any `json:"desired,omitempty"`
	// Drift: the value is not the desired one. Pinned: the desired value was learned
	// from the cluster. Unknown: none is desired yet, and this one will be learned.
	Drift       bool       `json:"drift,omitempty"`
	Pinned      bool       `json:"pinned,omitempty"`
	Unknown     bool       `json:"unknown,omitempty"`
	Manager     string     `json:"manager,omitempty"`
	Subresource string     `json:"subresource,omitempty"`
	Operation   string     `json:"operation,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
}

type blamedLength struct {
	Path    string      `json:"path"`
	Length  int         `json:"length"`
	Problem schema.Kind `json:"problem"`
}

func readBlames(ctx context.Context, e *environment, name, named string) ([]blamedObject, error) {
	app, expected, err := e.getExpected(ctx, name)
	if err != nil {
		return nil, err
	}
	if expected, err = chosen(expected, named); err != nil {
		return nil, err
	}
	objects, err := e.objectsOf(app.Cluster)
	if err != nil {
		return nil, err
	}
	blames := make([]blamedObject, 0, len(expected))
	for _, object := range expected {
		live, err := objects.live(ctx, placed(app, object.ID))
		if err != nil {
			return nil, err
		}
		blames = append(blames, blameOf(app, object, live, e.showPrivate))
	}
	return blames, nil
}

// blameOf compares one object of an Application; live is nil if there is none. Private shows
// values that may be secrets.
func blameOf(app *application.Application, e plan.Expected, live map[string]any, private bool) blamedObject {
	found := blamedObject{ID: placed(app, e.ID), Missing: live == nil}
	if live == nil {
		return found
	}
	id, err := manifest.Identify(live)
	if err == nil {
		found.Namespace = id.Namespace
	}
	desired := application.Marks(app.NamespacedName, app.UID, id).On(plan.Placed(e.Desired, id.Namespace))
	differences := e.Schema.Compare(desired, live)
	for _, value := range e.Schema.Values(desired, live) {
		found.Fields = append(found.Fields, blamedFieldOf(e, value, differences, live, sight{e.ID.Kind, private}))
	}
	for _, d := range differences {
		if d.Kind == schema.TooShort || d.Kind == schema.TooLong {
			items, _ := d.Have.([]any)
			found.Lengths = append(found.Lengths, blamedLength{d.Path.String(), len(items), d.Kind})
		}
	}
	return found
}

func blamedFieldOf(e plan.Expected, value schema.Value, differences schema.Differences, live map[string]any, s sight) blamedField {
	field := blamedField{Path: value.Place.String()}
	field.Value, field.Desired = s.conceal(value.Place, value.Have, value.Want)
	if value.Path == nil {
		return field
	}
	field.Path = value.Path.String()
	field.Pinned = schema.ValueAt(e.Desired, value.Place) != nil && schema.ValueAt(e.Manifest, value.Place) == nil
	for _, d := range differences {
		if isBelow(value.Path, d.Path) {
			field.Drift = field.Drift || d.Kind == schema.Changed
			field.Unknown = field.Unknown || d.Kind == schema.Unknown
		}
	}
	if culprit := blame.Of(live, []schema.Path{value.Path}, ""); culprit.Known() {
		field.Manager, field.Subresource, field.Operation = culprit.Manager, culprit.Subresource, culprit.Operation
		if !culprit.Time.IsZero() {
			field.Since = &culprit.Time
		}
	}
	return field
}

func printBlames(out io.Writer, blames []blamedObject, wide bool, now time.Time) error {
	for i, b := range blames {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, oneLine(b.String()))
		if b.Missing {
			fmt.Fprintln(out, "  there is no such object")
			continue
		}
		rows := [][]cell{textCells("DRIFT", "PATH", "VALUE", "DESIRED", "MANAGER", "OPERATION", "SINCE")}
		for _, field := range b.Fields {
			rows = append(rows, field.row(wide, now))
		}
		for _, length := range b.Lengths {
			desired := map[schema.Kind]string{schema.TooShort: "more elements", schema.TooLong: "fewer elements"}[length.Problem]
			rows = append(rows, textCells("*", length.Path, fmt.Sprintf("%d elements", length.Length), desired, "", "", ""))
		}
		if err := newTable(out, painterFor(out)).print(rows...); err != nil {
			return err
		}
	}
	return nil
}

func (f blamedField) row(wide bool, now time.Time) []cell {
	mark, c, desired := "-", plain, shortened(f.Desired, wide)
	switch {
	case f.Drift:
		mark, c = "*", red
	case f.Unknown:
		desired = "(to be pinned)"
	}
	if f.Pinned {
		desired += " (pinned)"
	}
	manager := f.Manager
	if f.Subresource != "" {
		manager += " (" + f.Subresource + ")"
	}
	row := textCells(mark, f.Path, shortened(f.Value, wide), desired, manager, f.Operation, age(ptr.Deref(f.Since, time.Time{}), now))
	for i := range row {
		row[i].colour = c
	}
	return row
}

// widest is the maximum length of a value in a table.
const widest = 40

func shortened(value any, wide bool) string {
	text := oneLine(plainText(value))
	if runes := []rune(text); len(runes) > widest && !wide {
		return string(runes[:widest-3]) + "..."
	}
	return text
}
