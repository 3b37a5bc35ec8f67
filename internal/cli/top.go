package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// topInterval is how often the view is drawn at most, and ages are counted on.
const topInterval = time.Second

func newTopCommand(e *environment) *cobra.Command {
	var (
		o    scope
		once bool
	)
	command := &cobra.Command{
		Use:   "top",
		Short: "Show which Applications drift most, live",
		Long: `Show which Applications drift most, live: sorted by how often anything has drifted, as
far as their histories have room for it. OPEN is how many fields differ now, and are
left as they are; LAST DRIFT, OBJECT, BY and FIELDS are of the drift that was seen last.

It is refreshed as Applications change, until it is interrupted. With --once, and where
the output is no terminal, it is printed once.`,
		Example: `  kubectl krake top -A
  kubectl krake top -A --once | head`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := e.resolve(&o, nil); err != nil {
				return err
			}
			if once || !printers.IsTerminal(e.Out) {
				return e.topOnce(command.Context(), o)
			}
			v := view{environment: e, scope: o, known: known{}, height: e.height}
			return e.following(command.Context(), o, topInterval, v.changed, v.looked)
		},
	}
	o.addTo(command)
	command.Flags().BoolVar(&once, "once", false, "print it once")
	return command
}

func (e *environment) topOnce(ctx context.Context, o scope) error {
	items, err := e.read(ctx, o)
	switch {
	case err != nil:
		return err
	case len(items) == 0:
		fmt.Fprintln(e.ErrOut, noneFound(o))
		return nil
	}
	return newTable(e.Out, painterFor(e.Out)).print(topRows(items, o.all, e.heartbeatsOr(ctx, items), e.now())...)
}

// topRows are the Applications that drift most, the worst first, with a header.
func topRows(items []item, all bool, beats heartbeats, now time.Time) [][]cell {
	views := make([]overview, 0, len(items))
	last := map[string][]cell{}
	for _, i := range items {
		v := overviewOf(i, beats, now)
		views = append(views, v)
		last[v.namespace+"/"+v.name] = lastDrift(i, now)
	}
	slices.SortStableFunc(views, func(a, b overview) int {
		return cmp.Or(cmp.Compare(b.drifts.count, a.drifts.count), cmp.Compare(b.drifts.open, a.drifts.open), b.drifts.last.Compare(a.drifts.last))
	})
	header := textCells("NAME", "DRIFTS", "OPEN", "STATE", "CLUSTER", "LAST DRIFT", "OBJECT", "BY", "FIELDS")
	if all {
		header = append(textCells("NAMESPACE"), header...)
	}
	rows := [][]cell{header}
	for _, v := range views {
		var row []cell
		if all {
			row = textCells(v.namespace)
		}
		row = append(row, cell{text: v.name}, v.drifts.countCell(), v.drifts.openCell(), v.stateCell(), cell{text: v.cluster})
		rows = append(rows, append(row, last[v.namespace+"/"+v.name]...))
	}
	return rows
}

func (d drifts) openCell() cell {
	if d.open == 0 {
		return cell{text: "0"}
	}
	return cell{fmt.Sprint(d.open), yellow}
}

// lastDrift are the cells about the drift that was seen last.
func lastDrift(i item, now time.Time) []cell {
	if i.app == nil || len(i.app.Status.Drifts) == 0 {
		return textCells("", "", "", "")
	}
	drift := i.app.Status.Drifts[0]
	paths := make([]string, 0, len(drift.Fields))
	for _, field := range drift.Fields {
		paths = append(paths, field.Path)
	}
	return textCells(agoOrNever(drift.Seen.Time, now), objectText(drift.Object, i.stored.Namespace), byWhom(drift), strings.Join(paths, ", "))
}

// view is what is drawn on a terminal.
type view struct {
	*environment

	scope scope
	known known
	beats heartbeats
	// asked is when the agents were asked for last.
	asked time.Time
	drawn string
	// height is that of the terminal, in lines.
	height func() int
}

func (v *view) changed(ctx context.Context, c change) error {
	v.known.take(c)
	if v.drawn == "" {
		return v.looked(ctx)
	}
	return nil
}

// looked draws what there is to see now, if that is anything new. What changes many
// times in a second is not drawn as often.
func (v *view) looked(ctx context.Context) error {
	items, now := v.known.items(), v.now()
	if now.Sub(v.asked) >= beatsInterval {
		v.beats, v.asked = v.heartbeatsOr(ctx, items), now
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %s\n", timeOf(now), counted(len(items), "Application", "Applications"))
	rows := topRows(items, v.scope.all, v.beats, now)
	if err := newTable(&b, painterFor(v.Out)).print(rows[:min(len(rows), max(v.height()-2, 1))]...); err != nil {
		return err
	}
	if text := b.String(); text != v.drawn {
		v.drawn = text
		_, err := io.WriteString(v.Out, clearScreen+text+wrapLines)
		return err
	}
	return nil
}

// clearScreen has a terminal begin at the top, forget what is below, and cut lines that
// are longer than it is wide: there is room for as many lines as it is high. wrapLines
// has it go back to wrapping them.
const (
	clearScreen = "\x1b[H\x1b[2J\x1b[?7l"
	wrapLines   = "\x1b[?7h"
)

// height is that of the terminal, or of one as they once were if it does not say.
func (e *environment) height() int {
	if file, ok := e.Out.(interface{ Fd() uintptr }); ok {
		if _, lines, err := term.GetSize(int(file.Fd())); err == nil && lines > 0 {
			return lines
		}
	}
	return 24
}
