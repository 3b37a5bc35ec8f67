package status_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/internal/status"
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

// The remedy fits the cause of a refusal.
func TestRemediesFitTheCause(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(why string) error { return apierrors.NewForbidden(pods, "web", errors.New(why)) }
	invalid := func(kind string, cause *field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "web", field.ErrorList{cause})
	}
	const (
		corrected = ": correct it in the Application"
		grant     = ": grant the permission to the agent or to the Application's service account"
		other     = ": change the object, or what refuses it: no permission helps"
	)
	for _, c := range []struct {
		reason string
		err    error
		want   string
	}{
		{status.Invalid, invalid("ConfigMap", field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")),
			"Invalid: ConfigMap web: data: Forbidden: field is immutable when `immutable` is set" + corrected},
		{status.Invalid, invalid("Job", field.Invalid(field.NewPath("spec", "template"), map[string]string{"env": "hunter2"}, "field is immutable")),
			"Invalid: Job web: spec.template: Invalid value: field is immutable" + corrected},
		{status.Invalid, invalid("RoleBinding", field.Invalid(field.NewPath("roleRef"), map[string]string{"name": "b"}, "cannot change roleRef")),
			"Invalid: RoleBinding web: roleRef: Invalid value: cannot change roleRef" + corrected},
		{status.Invalid, invalid("Service", field.Invalid(field.NewPath("spec", "ports"), 0, "must be between 1 and 65535")),
			"Invalid: Service web: spec.ports: Invalid value: must be between 1 and 65535: correct it in the Application"},
		{status.Forbidden, forbidden("exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2"),
			"Forbidden: pods web: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2: raise the quota, or request less: no permission helps"},
		{status.Forbidden, forbidden("failed quota: few: must specify limits.cpu"),
			"Forbidden: pods web: failed quota: few: must specify limits.cpu: raise the quota, or request less: no permission helps"},
		{status.Forbidden, forbidden(`violates PodSecurity "restricted:latest": privileged`), `Forbidden: pods web: violates PodSecurity "restricted:latest": privileged` + other},
		{status.Forbidden, forbidden(`error looking up service account a/b: serviceaccount "b" not found`),
			`Forbidden: pods web: error looking up service account a/b: serviceaccount "b" not found` + other},
		{status.Forbidden, forbidden(`User "agent" cannot create resource "pods" in API group "" in the namespace "a"`), "agent may not create pods in the namespace a: grant it to this service account"},
		{status.Forbidden, forbidden(`user "agent" (groups=["a"]) is attempting to grant RBAC permissions not currently held:`), "Forbidden: pods web" + grant},
		{status.Forbidden, forbidden(`User "system:serviceaccount:krake-agents:local" cannot list resource "pods" in API group "" in the namespace "a"`),
			"system:serviceaccount:krake-agents:local may not list pods in the namespace a: grant it to the agent, by a ClusterRole with the label krake.dev/aggregate-to-agent=true"},
		{status.Forbidden, forbidden(`User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" at the cluster scope`),
			"system:serviceaccount:a:b may not create pods: grant it to this service account"},
		{status.Forbidden, errors.New("the hub has no role"), "the hub has no role" + grant},
	} {
		check.Equal(t, c.reason, c.want, status.Explain(c.reason, c.err))
	}
}
