package env

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/lens"
)

// The values of the flag -o.
const (
	AsTable   = "table"
	AsMessage = "message"
	AsWide    = "wide"
	AsJSON    = "json"
	AsYAML    = "yaml"
)

// Output is the flag -o of a command, whose first possible value is the default.
type Output struct {
	Value    string
	possible []string
}

// AddTo adds the flag with its possible values.
func (o *Output) AddTo(command *cobra.Command, possible ...string) {
	o.Value, o.possible = possible[0], possible
	command.Flags().VarP(o, "output", "o", "one of "+strings.Join(possible, ", "))
	Must(command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(possible, cobra.ShellCompDirectiveNoFileComp)))
}

// Set implements pflag.Value.
func (o *Output) Set(value string) error {
	if !slices.Contains(o.possible, value) {
		return fmt.Errorf("it has to be one of %s", strings.Join(o.possible, ", "))
	}
	o.Value = value
	return nil
}

// String implements pflag.Value.
func (o *Output) String() string { return o.Value }

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// IsDocument reports whether programs read the output.
func (o *Output) IsDocument() bool { return o.Value == AsJSON || o.Value == AsYAML }

// Must panics on an error that only a mistake in a command's flags can cause.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// PrintDocument prints a value as JSON or as YAML. If YAML would contain control characters of
// a terminal, it prints JSON, which is valid YAML and escapes them.
func PrintDocument(out io.Writer, format string, value any) error {
	if format == AsYAML {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		if !strings.ContainsFunc(string(text), lens.IsInvisible) {
			_, err = out.Write(text)
			return err
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(out, lens.Visible(b.String()))
	return err
}

// Colour is the colour of a text on a terminal. All have the same length, plain included, so
// that colours do not shift the columns of a table.
type Colour string

// The colours of a terminal.
const (
	Plain  Colour = "\x1b[39m"
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
)

// Painter colours output to a terminal, and no other output.
type Painter struct{ On bool }

// PainterFor decides by the writer, and by the variables NO_COLOR and TERM.
func PainterFor(out io.Writer) Painter { return Painter{printers.AllowsColorOutput(out)} }

// Paint returns a text in a colour.
func (p Painter) Paint(c Colour, text string) string {
	if !p.On {
		return text
	}
	return string(c) + text + string(Plain)
}

// Cell is a text in a table. Without a colour it is plain.
type Cell struct {
	Text string
	Colour
}

// TextCells returns cells without a colour.
func TextCells(texts ...string) []Cell {
	cells := make([]Cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, Cell{Text: text})
	}
	return cells
}

// Table prints rows in columns, as kubectl prints them. Rows that are printed later keep
// the columns.
type Table struct {
	writer interface {
		io.Writer
		Flush() error
	}
	painter Painter
	Indent  string
}

// NewTable returns a table without rows.
func NewTable(out io.Writer, p Painter) *Table {
	return &Table{writer: printers.GetNewTabWriter(out), painter: p}
}

// Print prints rows, the first of which may be a header.
func (t *Table) Print(rows ...[]Cell) error {
	for _, row := range rows {
		texts := make([]string, 0, len(row))
		for _, c := range row {
			texts = append(texts, t.painter.Paint(cmp.Or(c.Colour, Plain), OneLine(c.Text)))
		}
		fmt.Fprintln(t.writer, t.Indent+strings.Join(texts, "\t"))
	}
	return t.writer.Flush()
}

// None stands for a missing text, as in kubectl.
const None = lens.None

// OneLine returns a text as one cell. An empty one would shift the columns for programs that
// count them.
func OneLine(text string) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return None
	}
	return lens.Visible(text)
}

// Age returns how long ago something was: "5m".
func Age(then, now time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// AgoOrNever returns "5m ago", and an empty text for the zero time.
func AgoOrNever(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return Age(then, now) + " ago"
}

// Shortly returns a duration for people: "12ms", "3s", "4m12s".
func Shortly(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// TimeOf returns a time as annotations have it.
func TimeOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Counted returns "1 object", "2 objects".
func Counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// YAML returns an object as YAML, and nothing for one that is absent.
func YAML(object any) (string, error) {
	if object == nil {
		return "", nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write an object as YAML: %w", err)
	}
	return string(text), nil
}
