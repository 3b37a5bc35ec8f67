package schema

import (
	"fmt"
	"strings"
)

// maxFindings bounds the errors and the warnings that are listed for one Application.
const maxFindings = 1000

// report collects findings in order, each with the place that is being read.
type report struct {
	findings         Findings
	errors, warnings int
	// path is the place, step by step. Only a finding turns it into a text, because names may be
	// long, and places many.
	path []string
}

func (r *report) enter(step string) { r.path = append(r.path, step) }
func (r *report) leave()            { r.path = r.path[:len(r.path)-1] }

func (r *report) add(code, format string, arguments ...any) {
	if r.errors++; r.errors <= maxFindings {
		r.findings = append(r.findings, Finding{Code: code, Path: r.place(), Message: message(format, arguments)})
	}
}

func (r *report) addAt(step, code, format string, arguments ...any) {
	r.enter(step)
	r.add(code, format, arguments...)
	r.leave()
}

func (r *report) warn(code, format string, arguments ...any) {
	if r.warnings++; r.warnings <= maxFindings {
		r.findings = append(r.findings, Finding{Code: code, Path: r.place(), Message: message(format, arguments), Warning: true})
	}
}

// place returns the path as a text of bounded length.
func (r *report) place() string {
	var b strings.Builder
	for _, step := range r.path {
		b.WriteString(shortened(step))
		if b.Len() > maxPlace {
			b.WriteString("...")
			break
		}
	}
	return b.String()
}

// all returns the findings. If some are not listed, the last finding has their number.
func (r *report) all() Findings {
	if more := r.errors - maxFindings; more > 0 {
		return append(r.findings, Finding{
			Code: "more-mistakes", Path: "spec", Message: fmt.Sprintf("%d more mistakes are not listed", more),
		})
	}
	return r.findings
}

// message formats a text; its arguments may be names of any length.
func message(format string, arguments []any) string {
	for i, argument := range arguments {
		if name, ok := argument.(string); ok {
			arguments[i] = shortened(name)
		}
	}
	return fmt.Sprintf(format, arguments...)
}
