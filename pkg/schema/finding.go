package schema

import (
	"fmt"
	"strings"
)

// Finding is a mistake in a manifest or an observer schema, or, with Warning,
// something that is valid but hardly meant (specification, section 3).
type Finding struct {
	// Code is the stable name of the rule: "control-missing".
	Code string
	// Path leads to the place: "spec.observer_schema[0].spec.ports".
	Path    string
	Message string
	Warning bool
}

// Error gives "path: message".
func (f Finding) Error() string { return f.Path + ": " + f.Message }

// Findings of one Application: those of the manifest, then those of the schemas.
type Findings []Finding

// Errors leaves the warnings out.
func (f Findings) Errors() Findings { return f.choose(false) }

// Warnings gives the warnings only.
func (f Findings) Warnings() Findings { return f.choose(true) }

func (f Findings) choose(warning bool) Findings {
	var chosen Findings
	for _, finding := range f {
		if finding.Warning == warning {
			chosen = append(chosen, finding)
		}
	}
	return chosen
}

const (
	// maxFindings bounds what is told of one Application. It is more than anybody
	// reads, and far less than the mistakes that a long text has room for.
	maxFindings = 1000
	// maxPlace and maxStep bound the length of a path and of a name in it.
	maxPlace = 1024
	maxStep  = 320
)

// collector takes so many errors and so many warnings, in their order.
type collector struct {
	findings         Findings
	errors, warnings int
}

func (c *collector) add(f Finding) {
	counter := &c.errors
	if f.Warning {
		counter = &c.warnings
	}
	if *counter++; *counter <= maxFindings {
		c.findings = append(c.findings, f)
	}
}

// all gives the findings, and a last one for those that there was no room for.
func (c *collector) all() Findings {
	if more := c.errors - maxFindings; more > 0 {
		return append(c.findings, Finding{
			Code: "more-mistakes", Path: "spec", Message: fmt.Sprintf("%d more mistakes are not listed", more),
		})
	}
	return c.findings
}

// message is a text in which names of any length may be told.
func message(format string, arguments []any) string {
	for i, argument := range arguments {
		if name, ok := argument.(string); ok {
			arguments[i] = shortened(name)
		}
	}
	return fmt.Sprintf(format, arguments...)
}

func shortened(name string) string {
	if len(name) <= maxStep {
		return name
	}
	return strings.ToValidUTF8(name[:maxStep], "") + "..."
}
