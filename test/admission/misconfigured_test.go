package admission

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// onlyObject is a wrong condition: it misses a request that removes the annotation.
const onlyObject = `object.metadata.?annotations[?"krake.dev/application"].hasValue()`

// stripAndForge removes the annotation of an Application, and forges its status.
const stripAndForge = `{"metadata": {"annotations": {"krake.dev/application": null}}, "data": {"status": "{}"}}`

// While the webhook is misconfigured, no Application gains authority. A user with all rights
// makes each write, in a namespace where the Application web runs.
func TestMisconfiguredWebhook(t *testing.T) {
	kit.Long(t, "each row of a long table")
	expire := func(t *testing.T, namespace string) {
		t.Helper()
		startExpired(t).configure(t, namespace, func(*admissionregistrationv1.MutatingWebhook) {})
	}
	// expireWith leaves only a webhook with an expired certificate.
	expireWith := func(change func(*admissionregistrationv1.MutatingWebhook)) func(*testing.T, string) {
		return func(t *testing.T, namespace string) {
			t.Helper()
			startExpired(t).configure(t, namespace, change)
			withoutConfiguration(t)
		}
	}

	createApplication := func(t *testing.T, namespace string) error {
		t.Helper()
		return create(t, root, newApplication(namespace, "new"))
	}
	makePlain := func(t *testing.T, namespace string) error {
		t.Helper()
		return createPlain(t, root, namespace)
	}
	for _, c := range []struct {
		name  string
		given func(t *testing.T, namespace string)
		write func(t *testing.T, namespace string) error
		want  string // of the refusal; empty: accepted
	}{
		{"expired certificate: no Application is created", expire, createApplication, "x509: certificate has expired"},
		{"expired certificate: a plain ConfigMap is created", expire, makePlain, ""},
		{"expired certificate, failurePolicy Ignore: an Application is admitted as it is, and nobody acts upon it",
			expireWith(func(webhook *admissionregistrationv1.MutatingWebhook) {
				webhook.FailurePolicy = new(admissionregistrationv1.Ignore)
			}), createUnadmitted, ""},
		{"down, a condition on the object only: the webhook is not asked when the annotation goes, but the policy is",
			expireWith(func(webhook *admissionregistrationv1.MutatingWebhook) {
				webhook.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "is", Expression: onlyObject}}
			}), stripAndForgeWeb, policy},
		{"down, the shipped condition: the webhook is asked when the annotation goes",
			expireWith(func(*admissionregistrationv1.MutatingWebhook) {}),
			stripAndForgeWeb, `failed calling webhook "test.krake.dev"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			namespace := newNamespace(t)
			mustRun(t, namespace, "web")
			c.given(t, namespace)
			complain(t, c.write(t, namespace), c.want)
		})
	}
}

func createPlain(t *testing.T, as user, namespace string) error {
	t.Helper()
	return create(t, as, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plain"}})
}

func stripAndForgeWeb(t *testing.T, namespace string) error {
	t.Helper()
	return patch(t, root, namespace, "web", stripAndForge)
}

// createUnadmitted creates an Application past the webhook, and edits it when the
// shipped configuration is back.
func createUnadmitted(t *testing.T, namespace string) error {
	t.Helper()
	if err := create(t, root, newApplication(namespace, "new")); err != nil {
		return err
	}
	notActedUpon(t, namespace, "new")
	restore(t)
	notActedUpon(t, namespace, "new")
	return nil
}

// A request that is too large is refused with its size and the limit, if it reaches the
// webhook at all.
func TestTooLargeRequestsAreRefused(t *testing.T) {
	namespace := newNamespace(t)
	for _, c := range []struct {
		name string
		size int
		code int32
		want string
	}{
		{"300 KB", 300_000, http.StatusUnprocessableEntity, "262144"},
		{"3.5 MB, more than a request may have", 3_500_000, http.StatusRequestEntityTooLarge, "limit is 3145728"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := newApplication(namespace, "large")
			text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata: {a: "
			app.Data[application.ManifestKey] = text + strings.Repeat("x", c.size-len(text)-1) + "}"
			err := create(t, editor, app)
			complain(t, err, c.want)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != c.code {
				t.Errorf("want code %d: %v", c.code, err)
			}
			if c.code == http.StatusUnprocessableEntity && !strings.Contains(errorText(err), fmt.Sprint(c.size)) {
				t.Errorf("%d bytes are not in: %v", c.size, err)
			}
		})
	}
}
