package status_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/status"
	"github.com/krake-observer/krake-observer/test/check"
)

// The API server's explanation is published, except that of a private field, which may repeat a value.
func TestExplanationsOfPrivateFields(t *testing.T) {
	const why = "must not contain hunter3"
	containers := field.NewPath("spec", "template", "spec", "containers").Index(0)
	for _, c := range []struct {
		kind  string
		cause *field.Error
		want  string
	}{
		{"Deployment", field.Invalid(field.NewPath("spec", "replicas"), -1, why), "spec.replicas: Invalid value: " + why},
		{"Deployment", field.Invalid(field.NewPath("metadata", "labels").Key("a b"), "x y", why), "metadata.labels[a b]: Invalid value: " + why},
		{"Deployment", field.Invalid(field.NewPath("metadata", "annotations"), "a b", why), "metadata.annotations: Invalid value: " + why},
		{"Deployment", field.Invalid(field.NewPath("metadata", "annotations").Key("a"), "x y", why), "metadata.annotations[a]: Invalid value"},
		{"Deployment", field.Invalid(containers.Child("env").Index(0).Child("value"), "x y", why), "spec.template.spec.containers[0].env[0].value: Invalid value"},
		{"Deployment", field.Invalid(containers.Child("args").Index(0), "x y", why), "spec.template.spec.containers[0].args[0]: Invalid value"},
		{"Deployment", field.Required(containers.Child("env").Index(0).Child("name"), ""), "spec.template.spec.containers[0].env[0].name: Required value"},
		{"ConfigMap", field.Invalid(field.NewPath("data").Key("a"), "x y", why), "data[a]: Invalid value"},
		{"ConfigMap", field.TooLong(field.NewPath("data"), "", 3), "data: Too long: may not be more than 3 bytes"},
		{"Secret", field.Invalid(field.NewPath("type"), "x", why), "type: Invalid value"},
		{"Service", field.Invalid(field.NewPath("spec", "password"), "x y", why), "spec.password: Invalid value"},
	} {
		err := apierrors.NewInvalid(schema.GroupKind{Kind: c.kind}, "web", field.ErrorList{c.cause})
		check.Equal(t, c.kind+" "+c.cause.Field, "Invalid: "+c.kind+" web: "+c.want, status.Explain("", err))
	}
	denied := errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: " + why)
	secrets := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "web", denied)
	check.Equal(t, "a policy about a Secret", "Forbidden: secrets web", status.Explain("", secrets))
}
