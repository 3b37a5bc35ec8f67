package webhook

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// invalid answers 422 with one cause for each refusal.
func invalid(name string, refusals field.ErrorList) admission.Response {
	return refused(apierrors.NewInvalid(schema.GroupKind{Kind: "Application"}, name, refusals).Status())
}

// forbidden answers 403 with one cause for each place that needs rights which the user
// does not have.
func forbidden(name, user string, denied []mutate.Need) admission.Response {
	var causes []metav1.StatusCause
	var texts []string
	for _, need := range joinVerbs(denied) {
		text := fmt.Sprintf("user %q may not %s", user, need)
		if need.Because != "" {
			text += " (" + need.Because + ")"
		}
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeForbidden), Field: need.Path, Message: text})
		texts = append(texts, need.Path+": "+text)
	}
	status := apierrors.NewForbidden(
		schema.GroupResource{Group: application.Domain, Resource: application.ApplicationsResource}, name,
		fmt.Errorf("an Application does nothing that its user may not do: %s: have an administrator bind a role that has these rights",
			strings.Join(texts, "; "))).Status()
	status.Details.Causes = causes
	return refused(status)
}

// joinVerbs makes one need of adjacent needs that differ only in their verbs, as in
// `create, patch, delete deployments.apps in namespace "demo"`.
func joinVerbs(denied []mutate.Need) []mutate.Need {
	var joined []mutate.Need
	var former mutate.Need
	for _, need := range denied {
		if former.Verb = need.Verb; len(joined) > 0 && former == need {
			joined[len(joined)-1].Verb += ", " + need.Verb
		} else {
			joined = append(joined, need)
		}
		former = need
	}
	return joined
}

// unanswerable answers 500: the request may be right, and another try may succeed.
func unanswerable(err error) admission.Response {
	return refused(apierrors.NewInternalError(fmt.Errorf("the Application cannot be checked now, try again: %w", err)).Status())
}

func refused(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// unknownKinds warns of kinds that this API server does not have. They may be mistakes, or
// kinds of another cluster, or kinds that are defined later.
func unknownKinds(objects []mutate.Object) []string {
	var warnings []string
	for i, object := range objects {
		if object.Guessed {
			warnings = append(warnings, fmt.Sprintf("%s: there is no kind %s in %s here: it is created when its cluster has one",
				mutate.ResourcePath(i), object.Kind, object.APIVersion))
		}
	}
	return warnings
}

// The API server cuts off more and longer warnings, without saying so.
const (
	maxWarnings = 15
	maxWarning  = 250
)

// truncate returns the warnings within these limits.
func truncate(warnings []string) []string {
	var texts []string
	for i, warning := range warnings {
		if i == maxWarnings {
			return append(texts, fmt.Sprintf("there are %d more warnings", len(warnings)-maxWarnings))
		}
		if len(warning) > maxWarning {
			warning = strings.ToValidUTF8(warning[:maxWarning], "") + "..."
		}
		texts = append(texts, warning)
	}
	return texts
}
