package schema

import "fmt"

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

func (f *Findings) add(code, path, format string, arguments ...any) {
	*f = append(*f, Finding{Code: code, Path: path, Message: fmt.Sprintf(format, arguments...)})
}

func (f *Findings) warn(code, path, format string, arguments ...any) {
	*f = append(*f, Finding{Code: code, Path: path, Message: fmt.Sprintf(format, arguments...), Warning: true})
}
