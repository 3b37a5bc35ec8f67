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

// forbidden answers 403 with one cause for each place that asks for rights which
// the user does not have.
func forbidden(name, user string, denied []mutate.Need) admission.Response {
	var causes []metav1.StatusCause
	var texts []string
	for _, rights := range alike(denied) {
		text := fmt.Sprintf("user %q may not %s", user, describe(rights))
		if why := rights[0].Because; why != "" {
			text += " (" + why + ")"
		}
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeForbidden), Field: rights[0].Path, Message: text})
		texts = append(texts, fmt.Sprintf("%s: %s", rights[0].Path, text))
	}
	status := apierrors.NewForbidden(
		schema.GroupResource{Group: application.Domain, Resource: application.ApplicationsResource}, name,
		fmt.Errorf("an Application does nothing that its user may not do: %s: have an administrator bind a role that has these rights",
			strings.Join(texts, "; "))).Status()
	status.Details.Causes = causes
	return refused(status)
}

// alike puts the verbs together that one place asks for on one resource.
func alike(denied []mutate.Need) [][]mutate.Need {
	var groups [][]mutate.Need
	for _, need := range denied {
		if last := len(groups) - 1; last >= 0 {
			former := groups[last][0]
			former.Verb = need.Verb
			if former == need {
				groups[last] = append(groups[last], need)
				continue
			}
		}
		groups = append(groups, []mutate.Need{need})
	}
	return groups
}

// describe gives `create, patch, delete deployments.apps in namespace "demo"`.
func describe(rights []mutate.Need) string {
	verbs := make([]string, 0, len(rights))
	for _, right := range rights {
		verbs = append(verbs, right.Verb)
	}
	right := rights[0].Access
	right.Verb = strings.Join(verbs, ", ")
	return right.String()
}

// unanswerable answers 500: the request may be right, and trying again may help.
func unanswerable(err error) admission.Response {
	return refused(apierrors.NewInternalError(fmt.Errorf("the Application cannot be checked now, try again: %w", err)).Status())
}

func refused(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// unknownKinds warns of kinds that this API server does not have: perhaps they
// are mistakes, perhaps those of another cluster, or of a time to come.
func unknownKinds(objects []mutate.Object) []string {
	var warnings []string
	for i, object := range objects {
		if object.Guessed {
			warnings = append(warnings, fmt.Sprintf("data.%s[%d]: there is no kind %s in %s here: it is created when its cluster has one",
				application.ManifestKey, i, object.Kind, object.APIVersion))
		}
	}
	return warnings
}

const (
	// maxWarnings and maxWarning bound what is told: the API server cuts off
	// what is longer, and says nothing of it.
	maxWarnings = 15
	maxWarning  = 250
)

// told gives the warnings that there is room for.
func told(warnings []string) []string {
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
