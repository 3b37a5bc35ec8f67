package reconcile

import (
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// refusals are changes that the API server has refused, by what they would have
// changed: the same is not asked again. Another desired value, or another live
// one, is another change.
type refusals map[string]string

// split gives the differences that may be mended, and those that were refused.
// Refusals that are not met any more are forgotten.
func (r *refusals) split(all schema.Differences) (open, refused schema.Differences, message string) {
	kept := refusals{}
	for _, difference := range all {
		key := keyOf(difference)
		text, ok := (*r)[key]
		if !ok {
			open = append(open, difference)
			continue
		}
		kept[key], message = text, text
		refused = append(refused, difference)
	}
	*r = kept
	return open, refused, message
}

// add remembers a refusal.
func (r *refusals) add(refused schema.Differences, message string) {
	if *r == nil {
		*r = refusals{}
	}
	for _, difference := range refused {
		(*r)[keyOf(difference)] = message
	}
}

func keyOf(d schema.Difference) string {
	values, err := json.Marshal([]any{d.Want, d.Have})
	if err != nil { // not JSON, and so never seen in an object
		return d.Path.String()
	}
	return d.Path.String() + " " + string(values)
}

// causes are the fields that an API server names when it refuses an object.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeUnexpectedServerResponse && cause.Field != "" && cause.Field != "<nil>" {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// blamed gives those of the differences that an API server refuses by naming
// these fields: all of them, if it names none of ours.
func blamed(differences schema.Differences, fields []string) schema.Differences {
	var found schema.Differences
	for _, difference := range differences {
		for _, field := range fields {
			if path := difference.Path.String(); isWithin(path, field) || isWithin(field, path) {
				found = append(found, difference)
				break
			}
		}
	}
	if len(found) == 0 {
		return differences
	}
	return found
}

// isWithin tells if a path is that of a field, or leads below it.
func isWithin(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// names gives the names of the fields on the way of a path, without indices:
// "spec.ports[0].nodePort" is spec, ports, nodePort.
func names(field string) []string {
	var found []string
	for part := range strings.SplitSeq(field, ".") {
		name, _, _ := strings.Cut(part, "[")
		if name != "" {
			found = append(found, name)
		}
	}
	return found
}
