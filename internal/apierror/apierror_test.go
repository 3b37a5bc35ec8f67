package apierror

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/test/check"
)

// A field error is about the object alone. What policies and quotas say is none.
func TestFieldErrors(t *testing.T) {
	ofPolicy := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
	ofPolicy.ErrStatus.Reason, ofPolicy.ErrStatus.Code = metav1.StatusReasonInvalid, 422
	ofPolicy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "the text of a policy"}}
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota"))
	quota.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: "the text of a quota"}}
	for why, c := range map[string]struct {
		err  error
		want []string
	}{
		"invalid": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{
			field.Required(field.NewPath("spec"), ""), field.Invalid(nil, "x", "no path"),
		}), []string{"spec"}},
		"a policy":       {ofPolicy, nil},
		"a quota":        {quota, nil},
		"no status":      {errors.New("boom"), nil},
		"without a word": {apierrors.NewBadRequest("no"), nil},
		"no error":       {nil, nil},
	} {
		var fields []string
		for _, cause := range FieldErrors(c.err) {
			fields = append(fields, cause.Field)
		}
		check.Equal(t, why, c.want, fields)
	}
}

// A message has no value: it may be private.
func TestWithoutValue(t *testing.T) {
	path := field.NewPath("spec")
	for _, c := range []struct{ message, want string }{
		{field.Invalid(path, `a: "b": c`, "is no name").ErrorBody(), "Invalid value: is no name"},
		{field.Invalid(path, "hunter2", "must not be hunter2").ErrorBody(), "Invalid value"},
		{field.Invalid(path, map[string]any{"a": []any{1, "hunter2"}}, "must not be hunter2").ErrorBody(), "Invalid value"},
		{field.NotFound(path, "hunter2").ErrorBody(), "Not found"},
		{field.Invalid(path, -1, "is negative").ErrorBody(), "Invalid value: is negative"},
		{field.Invalid(path, map[string]string{"password": "x: y"}, "is too much").ErrorBody(), "Invalid value: is too much"},
		{"Invalid value: secret things: are none", "Invalid value"},
		{"Invalid value: 123-hunter2: is none", "Invalid value"},
		{field.NotSupported(path, "Some", []string{"Any", "None"}).ErrorBody(), `Unsupported value: supported values: "Any", "None"`},
		{field.Duplicate(path, "twice").ErrorBody(), "Duplicate value"},
		{field.Required(path, "name it").ErrorBody(), "Required value: name it"},
		{field.TooLong(path, "long", 3).ErrorBody(), "Too long: may not be more than 3 bytes"},
		{"anything", "anything"},
	} {
		check.Equal(t, "text", c.want, WithoutValue(c.message))
	}
}

// A description has what the API server says about a shown field, and the texts of policies, in one line.
func TestDescribe(t *testing.T) {
	all := func(string, metav1.StatusCause) bool { return true }
	none := func(string, metav1.StatusCause) bool { return false }
	path, web := field.NewPath("spec", "nodePort"), schema.GroupResource{Resource: "services"}
	invalid := func(cause *field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{cause})
	}
	denied := func(by string) error {
		denial := "ValidatingAdmissionPolicy '" + by + "' with binding 'b' denied request: use another image"
		err := apierrors.NewForbidden(web, "web", errors.New(denial))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: denial}}
		return err
	}
	ofWebhook := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{field.Invalid(path, 7, "hunter2")})
	ofWebhook.ErrStatus.Message = `admission webhook "x" denied the request: hunter2`
	ofCode := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	for _, c := range []struct {
		why, want string
		err       error
		isShown   func(string, metav1.StatusCause) bool
	}{
		{"a field", "Invalid: Service web: spec.nodePort: Invalid value: not in the range", invalid(field.Invalid(path, 7, "not in the range")), all},
		{"a field that is not shown", "Invalid: Service web: spec.nodePort: Invalid value", invalid(field.Invalid(path, 7, "not in the range")), none},
		{"several lines", "Invalid: Service web: spec.nodePort: Forbidden", invalid(field.Forbidden(path, "may not change\n-a\n+b")), all},
		{"a whole object", "Invalid: Service web: spec.nodePort: Forbidden", invalid(field.Forbidden(path, "core.PodSpec{A: 1}")), all},
		{"a long line", "Invalid: Service web: spec.nodePort: Invalid value", invalid(field.Invalid(path, 7, strings.Repeat("x", 300))), all},
		{"a policy", "Forbidden: services web: ValidatingAdmissionPolicy 'p' with binding 'b'", denied("p"), all},
		{"a policy of ours", "Forbidden: services web: ValidatingAdmissionPolicy 'krake-x' with binding 'b' denied request: use another image", denied("krake-x"), all},
		{"a policy for a private object", "Forbidden: services web", denied("p"), none},
		{"a webhook of others that names a field", `Invalid: Service web: admission webhook "x" denied the request, spec.nodePort: Invalid value`, ofWebhook, all},
		{"a rule of a definition", "Invalid: Song web: spec: Invalid value", apierrors.NewInvalid(schema.GroupKind{Group: "example.org", Kind: "Song"}, "web",
			field.ErrorList{field.Invalid(field.NewPath("spec"), "object", "password hunter2 is too short")}), all},
		{"a quota", "Forbidden: services web: exceeded quota: q, requested: services=1", apierrors.NewForbidden(web, "web", errors.New("exceeded quota: q, requested: services=1")), all},
		{"Pod Security", `Forbidden: services web: violates PodSecurity "baseline:latest": privileged`, apierrors.NewForbidden(web, "web", errors.New(`violates PodSecurity "baseline:latest": privileged`)), all},
		{"a missing right", "Forbidden: services web", apierrors.NewForbidden(web, "web", errors.New(`User "x" cannot patch`)), all},
		{"a right in a namespace", "system:serviceaccount:a:b may not patch deployments.apps/status in the namespace demo", apierrors.NewForbidden(web, "web",
			errors.New(`User "system:serviceaccount:a:b" cannot patch resource "deployments/status" in API group "apps" in the namespace "demo": RBAC: hunter2`)), all},
		{"a right to act as another", "anna may not act as a service account to create services", apierrors.NewForbidden(web, "web",
			errors.New(`User "anna" cannot impersonate-on:serviceaccount:create resource "services" in API group "" at the cluster scope`)), none},
		{"a right in the text of a webhook", `BadRequest: admission webhook "x" denied the request, the API server's text may repeat values: kubectl apply --dry-run=server shows it`,
			apierrors.NewBadRequest(`admission webhook "x" denied the request: a is forbidden: User "hunter2" cannot get resource "a" in API group "" at the cluster scope`), all},
		{"a webhook that is only quoted", "Forbidden: services web", apierrors.NewForbidden(web, "web", errors.New(`admission webhook "x" denied the request: hunter2`)), all},
		{"a webhook of others that denies without a reason", `admission webhook "x.example.org" denied the request, the API server's text may repeat values: kubectl apply --dry-run=server shows it`, ofCode(400, "", `admission webhook "x.example.org" denied the request: hunter2`), all},
		{"a webhook that does not answer", `InternalError: failed calling webhook "x.example.org"`, apierrors.NewInternalError(errors.New(`failed calling webhook "x.example.org": failed to call webhook: Post "https://hunter2": EOF`)), all},
		{"a quota for a private object", "Forbidden: services web: exceeded quota: q, requested: services=1", apierrors.NewForbidden(web, "web", errors.New("exceeded quota: q, requested: services=1")), none},
		{"a quota that needs a limit", "Forbidden: services web: failed quota: q: must specify limits.cpu", apierrors.NewForbidden(web, "web", errors.New("failed quota: q: must specify limits.cpu")), all},
		{"an account that does not exist", `Forbidden: services web: error looking up service account a/b: serviceaccount "b" not found`, apierrors.NewForbidden(web, "web", errors.New(`error looking up service account a/b: serviceaccount "b" not found`)), all},
		{"a priority that does not exist", "Forbidden: services web: no PriorityClass with name a was found", apierrors.NewForbidden(web, "web", errors.New("no PriorityClass with name a was found")), all},

		{"an immutable field with a private value", "Invalid: Service web: spec.nodePort: Invalid value: field is immutable", invalid(field.Invalid(path, map[string]string{"a": "hunter2"}, "field is immutable")), none},
		{"an immutable field, whose value is no JSON", "Invalid: Service web: spec.nodePort: Invalid value: may not change once set", invalid(field.Invalid(path, func() {}, "may not change once set")), none},
		{"what a rule of a definition says of an immutable field", "Invalid: Song web: spec: Invalid value: field is immutable", apierrors.NewInvalid(schema.GroupKind{Group: "example.org", Kind: "Song"}, "web",
			field.ErrorList{field.Invalid(field.NewPath("spec"), "object", "password hunter2: field is immutable")}), none},
		{"a rule of a definition that talks like Kubernetes", "Invalid: Song web: spec: Forbidden", apierrors.NewInvalid(schema.GroupKind{Group: "example.org", Kind: "Song"}, "web",
			field.ErrorList{field.Forbidden(field.NewPath("spec"), "updates to song spec for fields other than hunter2")}), all},
		{"fields of a StatefulSet", "Invalid: Service web: spec.nodePort: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
			invalid(field.Forbidden(path, "updates to statefulset spec for fields other than 'replicas' are forbidden")), none},
		{"a claim", "Invalid: Service web: spec.nodePort: Forbidden: spec is immutable after creation except resources.requests for bound claims",
			invalid(field.Forbidden(path, "spec is immutable after creation except resources.requests for bound claims\n  hunter2")), none},

		{"a value of another type", "BadRequest: cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type string",
			apierrors.NewBadRequest(`Note in version "v1" cannot be handled as a Note: json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.metadata.annotations of type string`), all},
		{"a quantity", "BadRequest: quantities must match the regular expression '^([+-]?[0-9.]+)$'",
			apierrors.NewBadRequest(`Deployment in version "v1" cannot be handled as a Deployment: quantities must match the regular expression '^([+-]?[0-9.]+)$'`), all},
		{"bytes", "BadRequest: illegal base64 data at input byte 4", apierrors.NewBadRequest(`ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 4`), all},
		{"a time", "BadRequest: the API server's text may repeat values: kubectl apply --dry-run=server shows it",
			apierrors.NewBadRequest(`Song in version "v1" cannot be handled as a Song: parsing time "hunter2" as "2006-01-02T15:04:05Z07:00": cannot parse "hunter2" as "2006"`), all},
		{"a webhook that quotes an API server", `BadRequest: admission webhook "x" denied the request, the API server's text may repeat values: kubectl apply --dry-run=server shows it`,
			apierrors.NewBadRequest(`admission webhook "x" denied the request: hunter2: json: cannot unmarshal number into Go value of type hunter2`), all},
		{"two errors", "Forbidden: services web; boom", errors.Join(apierrors.NewForbidden(web, "web", errors.New("x")), errors.New("boom")), all},
	} {
		check.Equal(t, c.why, c.want, Describe(c.err, c.isShown))
	}
}

// Kubernetes says in fixed words that a field cannot change. They are shown of private fields, too, and then the
// object has to be created anew.
func TestWhatCannotChange(t *testing.T) {
	none := func(string, metav1.StatusCause) bool { return false }
	invalid := func(cause *field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{cause})
	}
	data := field.NewPath("data")
	for _, c := range []struct {
		err    error
		want   string
		is     bool
		fields []string
	}{
		{invalid(field.Forbidden(data, "field is immutable when `immutable` is set")), "Invalid: ConfigMap a: data: Forbidden: field is immutable when `immutable` is set", true, []string{"data"}},
		{invalid(field.Invalid(data, "hunter2", "field is immutable")), "Invalid: ConfigMap a: data: Invalid value: field is immutable", true, []string{"data"}},
		{invalid(field.Invalid(data, "hunter2", "field is immutable: hunter2")), "Invalid: ConfigMap a: data: Invalid value", true, []string{"data"}},
		{
			invalid(field.Forbidden(data, "pod updates may not change fields other than `spec.containers[*].image`,`spec.tolerations`\n  core.PodSpec{hunter2")),
			"Invalid: ConfigMap a: data: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.tolerations`", true, nil,
		},
		{invalid(field.Invalid(data, "hunter2", "must be short")), "Invalid: ConfigMap a: data: Invalid value", false, nil},
	} {
		check.Equal(t, "text", c.want, Describe(c.err, none))
		check.Equal(t, c.want+" cannot change", c.is, IsImmutable(c.err))
		check.Equal(t, "fields of "+c.want, c.fields, ImmutableFields(c.err))
	}
}

// A refusal is about the content of a write.
func TestIsRefusal(t *testing.T) {
	web := schema.GroupResource{Resource: "services"}
	webhook := func(reason metav1.StatusReason, code int32, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reason, Code: code, Message: `admission webhook "x" ` + text}}
	}
	for why, c := range map[string]struct {
		err  error
		want bool
	}{
		"invalid":                    {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), true},
		"a quota":                    {apierrors.NewForbidden(web, "web", errors.New("exceeded quota: q")), true},
		"Pod Security":               {apierrors.NewForbidden(web, "web", errors.New(`violates PodSecurity "baseline:latest"`)), true},
		"a webhook":                  {webhook(metav1.StatusReasonForbidden, 403, "denied the request: no"), true},
		"a webhook without a reason": {webhook("", 400, "denied the request: no"), true},
		"a webhook without dry runs": {webhook(metav1.StatusReasonBadRequest, 400, "does not support dry run"), false},
		"a missing right":            {apierrors.NewForbidden(web, "web", errors.New(`User "x" cannot patch`)), false},
		"a conflict":                 {apierrors.NewConflict(web, "web", errors.New("changed")), false},
		"no answer of an API server": {errors.New("boom"), false},
		"a bad request":              {apierrors.NewBadRequest("no"), false},
		"no error":                   {nil, false},
	} {
		check.Equal(t, why, c.want, IsRefusal(c.err))
	}
}
