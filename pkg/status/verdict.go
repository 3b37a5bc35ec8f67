package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Verdict is the result of a pass for one object, or for the Application as a whole. Without a reason, all
// is well.
type Verdict struct {
	Object  manifest.ID
	Reason  string
	Message string
	// Fields are the fields that differ.
	Fields []schema.Path
	// Err makes the queue try again. Again is when to look again, zero for never.
	Err   error
	Again time.Time
}

// Failed is the verdict on an error, with a remedy where the error itself has none.
func Failed(reason string, err error) Verdict {
	return Verdict{Reason: reason, Message: Explain(reason, err), Err: err}
}

// Explain returns the text of an error, with the remedy of its reason.
func Explain(reason string, err error) string {
	known, _ := Of(reason)
	if known.Remedy == "" {
		return apierror.Explain(err)
	}
	return apierror.Cut(apierror.Describe(err) + ": " + known.Remedy)
}

// String returns "apps/v1 Deployment demo/web: spec.replicas: held until ...".
func (v Verdict) String() string {
	var parts []string
	if v.Object != (manifest.ID{}) && !strings.Contains(v.Message, v.Object.String()) {
		parts = append(parts, v.Object.String())
	}
	if len(v.Fields) > 0 {
		parts = append(parts, join(v.Fields, ", "))
	}
	if v.Message != "" {
		parts = append(parts, v.Message)
	}
	return strings.Join(parts, ": ")
}

// gravest returns the gravest reason of all, and the verdicts with it.
func gravest(verdicts []Verdict) (reason string, found []Verdict) {
	for _, v := range verdicts {
		if v.Reason != "" && (reason == "" || gravity(v.Reason) < gravity(reason)) {
			reason = v.Reason
		}
	}
	if reason == "" {
		return "", nil
	}
	return reason, filter(verdicts, func(v Verdict) bool { return v.Reason == reason })
}

// about returns the verdicts whose reasons make a condition true.
func about(condition string, verdicts []Verdict) []Verdict {
	return filter(verdicts, func(v Verdict) bool {
		reason, _ := Of(v.Reason)
		return slices.Contains(reason.Conditions, condition)
	})
}

func filter(verdicts []Verdict, is func(Verdict) bool) []Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool { return !is(v) })
}

// texts returns the message of a condition about these verdicts.
func texts(of []Verdict) string { return apierror.Cut(join(of, "; ")) }

func join[T fmt.Stringer](of []T, separator string) string {
	texts := make([]string, 0, len(of))
	for _, one := range of {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, separator)
}
