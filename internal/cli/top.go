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

// topInterval is the interval in which the view is drawn at most, and ages are updated.
const topInterval = time.Second

func newTopCommand(e *environment) *cobra.Command {
	var (
		o    scope
		once bool
	)
	command := &cobra.Command{
		Use:   "top",
		Short: "Show which Applications drift most, live",
		Long: `Show which Applications drift most, live, sorted by the number of drifts in their
histories. OPEN is how many fields differ now, and are not repaired. LAST DRIFT, OBJECT,
BY and FIELDS describe the latest drift.

The view is refreshed as Applications change, until you interrupt it. With --once, and if
the output is not a terminal, it is printed once.`,
		Example: `  kubectl krake top -A
  kubectl krake top -A --once | head`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := e.resolve(&o, nil); err != nil {
				return err
			}
			if once || !printers.IsTerminal(e.Out) {
				return printTop(command.Context(), e, o)
			}
			s := screen{environment: e, scope: o, known: known{}, height: func() int { return height(e.Out) }}
			return e.following(command.Context(), o, topInterval, s.changed, s.looked)
		},
	}
	o.addTo(command)
	command.Flags().BoolVar(&once, "once", false, "print it once")
	return command
}

func printTop(ctx context.Context, e *environment, o scope) error {
	items, err := e.read(ctx, o)
	switch {
	case err != nil:
		return err
	case len(items) == 0:
		fmt.Fprintln(e.ErrOut, o.noneFound())
		return nil
	}
	return newTable(e.Out, painterFor(e.Out)).print(topRows(items, o.all, e.heartbeatsOr(ctx, items), e.now())...)
}

func topRows(items []item, all bool, beats heartbeats, now time.Time) [][]cell {
	type view struct {
		overview

		last []cell
	}
	views := make([]view, 0, len(items))
	for _, i := range items {
		views = append(views, view{overviewOf(i, beats, now), lastDrift(i, now)})
	}
	slices.SortStableFunc(views, func(a, b view) int {
		return cmp.Or(cmp.Compare(b.drifts.count, a.drifts.count), cmp.Compare(b.drifts.open, a.drifts.open), b.drifts.last.Compare(a.drifts.last))
	})
	header := textCells("NAME", "DRIFTS", "OPEN", "STATE", "CLUSTER", "LAST DRIFT", "OBJECT", "BY", "FIELDS")
	rows := [][]cell{withNamespace(all, "NAMESPACE", header)}
	for _, v := range views {
		open := cell{text: fmt.Sprint(v.drifts.open)}
		if v.drifts.open > 0 {
			open.colour = yellow
		}
		row := []cell{{text: v.name}, {text: v.drifts.counted()}, open, v.stateCell(), {text: v.cluster}}
		rows = append(rows, withNamespace(all, v.namespace, append(row, v.last...)))
	}
	return rows
}

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

// screen is the view on a terminal.
type screen struct {
	*environment

	scope scope
	known known
	beats heartbeats
	// asked is when the heartbeats were read last.
	asked time.Time
	drawn string
	// height is the height of the terminal, in lines.
	height func() int
}

func (s *screen) changed(ctx context.Context, c change) error {
	s.known.take(c)
	if s.drawn == "" {
		return s.looked(ctx)
	}
	return nil
}

// looked draws the screen if it has changed. The interval limits how often it draws frequent
// changes.
func (s *screen) looked(ctx context.Context) error {
	items, now := s.known.items(), s.now()
	if now.Sub(s.asked) >= beatsInterval {
		s.beats, s.asked = s.heartbeatsOr(ctx, items), now
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %s\n", timeOf(now), counted(len(items), "Application", "Applications"))
	rows := topRows(items, s.scope.all, s.beats, now)
	if err := newTable(&b, painterFor(s.Out)).print(rows[:min(len(rows), max(s.height()-2, 1))]...); err != nil {
		return err
	}
	if text := b.String(); text != s.drawn {
		s.drawn = text
		_, err := io.WriteString(s.Out, clearScreen+text+wrapLines)
		return err
	}
	return nil
}

// clearScreen moves a terminal to its top, clears it, and makes it cut long lines, so that
// each line takes one row. wrapLines makes it wrap them again.
const (
	clearScreen = "\x1b[H\x1b[2J\x1b[?7l"
	wrapLines   = "\x1b[?7h"
)

// height returns the height of the terminal, or a default if it is unknown.
func height(out io.Writer) int {
	if file, ok := out.(interface{ Fd() uintptr }); ok {
		if _, lines, err := term.GetSize(int(file.Fd())); err == nil && lines > 0 {
			return lines
		}
	}
	return 24
}
