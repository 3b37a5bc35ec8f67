package reconcile

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// recreate is the remedy for a field that cannot change.
const recreate = "undo the change in the Application, or delete the object: the agent creates it again"

// remedyFor returns the way out of a refusal.
func (r *repair) remedyFor(live map[string]any, refusal error) string {
	if apierrors.IsForbidden(refusal) {
		return status.Remedy(status.Forbidden, refusal)
	}
	if apierror.IsImmutable(refusal) {
		return recreate
	}
	if field, culprit, ok := r.obstacle(live, apierror.Fields(refusal)); ok {
		return fmt.Sprintf("%s of the object is in the way, which the Application does not observe%s: remove it there, or observe it", field, setBy(culprit))
	}
	return status.Remedy(status.Invalid, refusal)
}

func setBy(culprit blame.Culprit) string {
	if !culprit.Known() {
		return ""
	}
	return " and " + culprit.Name() + " has set"
}

// obstacle returns the first field among those that an API server names which is a value of the
// object, is not observed, and contains nothing that is. culprit is who has set it.
func (r *repair) obstacle(live map[string]any, fields []string) (field string, culprit blame.Culprit, ok bool) {
	o := r.object
	values := o.plan.Marked.Values(o.plan.MarkedDesired(), live)
	for _, field := range fields {
		path, err := schema.ParsePath(field)
		if err != nil {
			continue
		}
		isObserved := slices.ContainsFunc(values, func(value schema.Value) bool {
			observed := value.Path.String()
			return value.Path != nil && (pacing.IsWithin(observed, field) || pacing.IsWithin(field, observed))
		})
		if !isObserved && len(path) > 0 && schema.ValueAt(live, path) != nil {
			return field, blame.Of(live, []schema.Path{path}, o.inputs.fieldManager), true
		}
	}
	return "", blame.Culprit{}, false
}
