package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// documentVersion is the apiVersion of what is printed with -o json and -o yaml. Its
// fields keep their names.
const documentVersion = "cli." + application.Domain + "/v1"

// documentList is several documents of one kind, as -o json and -o yaml print them.
type documentList[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
}

// The values of the flag -o.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
)

// outputFlag is the flag -o, with the values that a command has.
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

// isDocument tells of what is for programs to read.
func (o *outputFlag) isDocument() bool { return o.value == asJSON || o.value == asYAML }

// must is for what only a mistake in a command's flags can make fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// printDocument prints a value as JSON or as YAML. The latter is a document that others
// may follow; where YAML would write out what commands a terminal, it is JSON, which is
// YAML as well, and has escapes for it.
func printDocument(out io.Writer, format string, value any) error {
	if format == asYAML {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		if !strings.ContainsFunc(string(text), isInvisible) {
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
	_, err := io.WriteString(out, visible(b.String()))
	return err
}

// colour is that of a text on a terminal.
type colour string

// The colours. All are of one length, plain among them, or a table with colours would
// have other columns than one without.
const (
	plain  colour = "\x1b[39m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
)

// painter colours what goes to a terminal, and nothing that goes elsewhere.
type painter struct{ on bool }

// painterFor goes by the writer, and by the variables NO_COLOR and TERM.
func painterFor(out io.Writer) painter { return painter{printers.AllowsColorOutput(out)} }

// paint gives the text in a colour.
func (p painter) paint(c colour, text string) string {
	if !p.on {
		return text
	}
	return string(c) + text + string(plain)
}

// cell is a text in a table.
type cell struct {
	text string
	colour
}

// textCells are cells without a colour.
func textCells(texts ...string) []cell {
	cells := make([]cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, cell{text: text})
	}
	return cells
}

// table prints rows in columns, as kubectl prints them. What is printed later keeps
// the columns.
type table struct {
	out     io.Writer
	flush   func() error
	painter painter
	indent  string
}

func newTable(out io.Writer, p painter) *table {
	writer := printers.GetNewTabWriter(out)
	return &table{out: writer, flush: writer.Flush, painter: p}
}

// print prints rows, the first of which may be a header.
func (t *table) print(rows ...[]cell) error {
	for _, row := range rows {
		texts := make([]string, 0, len(row))
		for _, c := range row {
			texts = append(texts, t.painter.paint(orPlain(c.colour), oneLine(c.text)))
		}
		fmt.Fprintln(t.out, t.indent+strings.Join(texts, "\t"))
	}
	return t.flush()
}

func orPlain(c colour) colour {
	if c == "" {
		return plain
	}
	return c
}

// none stands for a text that is not there, as kubectl has it.
const none = "<none>"

// oneLine gives a text as one cell: an empty one would shift the columns of whoever
// counts them.
func oneLine(text string) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return none
	}
	return visible(text)
}

// visible writes out, as in JSON, what a terminal would not show but do: names of managers
// and messages are others' texts.
func visible(text string) string {
	if !strings.ContainsFunc(text, isInvisible) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !isInvisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}

// isInvisible: beside control characters, those that turn the direction of a text.
func isInvisible(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }

// age gives how long ago something was: "5m".
func age(then, now time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// shortly gives a duration as it is read: "12ms", "3s", "4m12s".
func shortly(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// timeOf gives a time as annotations have it.
func timeOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }
