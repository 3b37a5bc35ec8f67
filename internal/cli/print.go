package cli

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
	"github.com/krake-observer/krake-observer/pkg/application"
)

// documentVersion is the apiVersion of documents that -o json and -o yaml print. Their fields
// keep their names.
const documentVersion = "cli." + application.Domain + "/v1"

// documentList is a document with several of one kind.
type documentList[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Application is the one to which all items belong.
	Application string `json:"application,omitempty"`
	Items       []T    `json:"items"`
}

// The values of the flag -o.
const (
	asTable   = "table"
	asMessage = "message"
	asWide    = "wide"
	asJSON    = "json"
	asYAML    = "yaml"
)

// outputFlag is the flag -o of a command, whose first possible value is the default.
type outputFlag struct {
	value    string
	possible []string
}

func (o *outputFlag) addTo(command *cobra.Command, possible ...string) {
	o.value, o.possible = possible[0], possible
	command.Flags().VarP(o, "output", "o", "one of "+strings.Join(possible, ", "))
	must(command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(possible, cobra.ShellCompDirectiveNoFileComp)))
}

// Set implements pflag.Value.
func (o *outputFlag) Set(value string) error {
	if !slices.Contains(o.possible, value) {
		return fmt.Errorf("it has to be one of %s", strings.Join(o.possible, ", "))
	}
	o.value = value
	return nil
}

// String implements pflag.Value.
func (o *outputFlag) String() string { return o.value }

// Type implements pflag.Value.
func (o *outputFlag) Type() string { return "format" }

// isDocument reports whether programs read the output.
func (o *outputFlag) isDocument() bool { return o.value == asJSON || o.value == asYAML }

// must panics on an error that only a mistake in a command's flags can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// printDocument prints a value as JSON or as YAML. If YAML would contain control characters of
// a terminal, it prints JSON, which is valid YAML and escapes them.
func printDocument(out io.Writer, format string, value any) error {
	if format == asYAML {
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

// colour is the colour of a text on a terminal. All have the same length, plain included, so
// that colours do not shift the columns of a table.
type colour string

const (
	plain  colour = "\x1b[39m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
)

// painter colours output to a terminal, and no other output.
type painter struct{ on bool }

// painterFor decides by the writer, and by the variables NO_COLOR and TERM.
func painterFor(out io.Writer) painter { return painter{printers.AllowsColorOutput(out)} }

func (p painter) paint(c colour, text string) string {
	if !p.on {
		return text
	}
	return string(c) + text + string(plain)
}

// cell is a text in a table. Without a colour it is plain.
type cell struct {
	text string
	colour
}

func textCells(texts ...string) []cell {
	cells := make([]cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, cell{text: text})
	}
	return cells
}

// withNamespace puts the namespace before a row, in a table of all namespaces.
func withNamespace(all bool, namespace string, row []cell) []cell {
	if !all {
		return row
	}
	return slices.Insert(row, 0, cell{text: namespace})
}

// table prints rows in columns, as kubectl prints them. Rows that are printed later keep
// the columns.
type table struct {
	writer interface {
		io.Writer
		Flush() error
	}
	painter painter
	indent  string
}

func newTable(out io.Writer, p painter) *table {
	return &table{writer: printers.GetNewTabWriter(out), painter: p}
}

// print prints rows, the first of which may be a header.
func (t *table) print(rows ...[]cell) error {
	for _, row := range rows {
		texts := make([]string, 0, len(row))
		for _, c := range row {
			texts = append(texts, t.painter.paint(cmp.Or(c.colour, plain), oneLine(c.text)))
		}
		fmt.Fprintln(t.writer, t.indent+strings.Join(texts, "\t"))
	}
	return t.writer.Flush()
}

// none stands for a missing text, as in kubectl.
const none = lens.None

// oneLine returns a text as one cell. An empty one would shift the columns for programs that
// count them.
func oneLine(text string) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return none
	}
	return lens.Visible(text)
}

// age returns how long ago something was: "5m".
func age(then, now time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// agoOrNever returns "5m ago", and an empty text for the zero time.
func agoOrNever(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return age(then, now) + " ago"
}

// shortly returns a duration for people: "12ms", "3s", "4m12s".
func shortly(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// timeOf returns a time as annotations have it.
func timeOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// counted returns "1 object", "2 objects".
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// textOf returns an object as YAML, and nothing for one that is absent.
func textOf(object any) (string, error) {
	if object == nil {
		return "", nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write an object as YAML: %w", err)
	}
	return string(text), nil
}
