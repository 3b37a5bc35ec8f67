package schema

import "strings"

// Finding is a mistake in a manifest or an observer schema. With Warning, it is valid but
// suspicious.
type Finding struct {
	// Code is the stable name of the rule: "control-missing".
	Code string
	// Path is the path of the place: "spec.observer_schema[0].spec.ports".
	Path    string
	Message string
	Warning bool
}

// Error returns "path: message".
func (f Finding) Error() string { return f.Path + ": " + f.Message }

// Findings of one Application: those of the manifest, then those of the schemas.
type Findings []Finding

// Errors returns the findings without the warnings.
func (f Findings) Errors() Findings { return f.choose(false) }

// Warnings returns only the warnings.
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
	// maxPlace and maxStep bound the length of a path and of a name in it.
	maxPlace = 1024
	maxStep  = 320
)

func shortened(name string) string {
	if len(name) <= maxStep {
		return name
	}
	return strings.ToValidUTF8(name[:maxStep], "") + "..."
}
