package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// handler answers the admission requests of ConfigMaps that are, or were,
// Applications. It has no side effects.
type handler struct{}

// Handle implements admission.Handler.
func (handler) Handle(_ context.Context, request admission.Request) admission.Response {
	var cm corev1.ConfigMap
	if err := json.Unmarshal(request.Object.Raw, &cm); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the ConfigMap: %w", err))
	}
	prepared := cm.DeepCopy()
	prepared.Namespace = request.Namespace
	warnings, refusals, err := prepare(prepared, request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case len(refusals) > 0:
		return refuse(request.Name, refusals).WithWarnings(warnings...)
	}
	prepared.Namespace = cm.Namespace
	return difference(&cm, prepared).WithWarnings(warnings...)
}

func prepare(cm *corev1.ConfigMap, request admission.Request) ([]string, field.ErrorList, error) {
	if request.Operation != admissionv1.Update {
		warnings, refusals := mutate.PrepareForCreate(cm)
		return warnings, refusals, nil
	}
	var stored corev1.ConfigMap
	if err := json.Unmarshal(request.OldObject.Raw, &stored); err != nil {
		return nil, nil, fmt.Errorf("decode the stored ConfigMap: %w", err)
	}
	warnings, refusals := mutate.PrepareForUpdate(cm, &stored)
	return warnings, refusals, nil
}

// difference answers with the JSON patch between two ConfigMaps. Both are
// encoded alike, so that the patch holds what was changed and nothing else, and
// both are whole, so that it adds a "data" that was missing before what is in it.
func difference(before, after *corev1.ConfigMap) admission.Response {
	from, err := json.Marshal(before)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	to, err := json.Marshal(after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(from, to)
}

// refuse answers 422 with one cause for each refusal.
func refuse(name string, refusals field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(schema.GroupKind{Kind: "Application"}, name, refusals).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}
