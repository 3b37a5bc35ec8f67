package certificates_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/krake-observer/krake-observer/internal/certificates"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// guard is the name of all objects of a validating webhook.
const guard = "certificates-guard"

// startGuard starts a Keeper of a validating webhook. Its manager is connected to another
// API server, which is unreachable.
func startGuard(t *testing.T) *certificates.Keeper {
	t.Helper()
	said, anyName := &log{}, true
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://hub.invalid"}, manager.Options{
		Logger:                 logr.FromSlogHandler(slog.NewJSONHandler(said, nil)),
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: &anyName},
	})
	kit.Must(t, err)
	options := certificates.Defaults()
	options.Name, options.Namespace, options.Service, options.Secret = guard, namespace, guard, guard
	options.Configuration, options.Kind, options.Overlap = guard, certificates.Validating, time.Second
	keeper, err := certificates.Add(mgr, shared.RESTConfig(), nil, options, time.Now)
	kit.Must(t, err)
	keeper.UseSmallKeys()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		check.Must(t, <-ended)
		if t.Failed() {
			t.Log(said)
		}
	})
	return keeper
}

// createGuard creates the objects of a validating webhook, which the API server never calls.
func createGuard(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	secrets, configurations := admin.CoreV1().Secrets(namespace), admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	named := metav1.ObjectMeta{Name: guard}
	t.Cleanup(func() {
		check.Must(t, secrets.Delete(ctx, guard, metav1.DeleteOptions{}))
		check.Must(t, configurations.Delete(ctx, guard, metav1.DeleteOptions{}))
	})
	kit.Must(t, kit.ErrorOf(secrets.Create(ctx, &corev1.Secret{ObjectMeta: named}, metav1.CreateOptions{})))
	none := admissionv1.SideEffectClassNone
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named}
	for _, name := range []string{"second.krake.dev", "first.krake.dev"} {
		validating.Webhooks = append(validating.Webhooks, admissionv1.ValidatingWebhook{
			Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: namespace, Name: guard}},
		})
	}
	kit.Must(t, kit.ErrorOf(configurations.Create(ctx, validating, metav1.CreateOptions{})))
}

// verifyGuard returns an error unless each webhook of the configuration trusts the certificate.
func verifyGuard(leaf *x509.Certificate) error {
	found, err := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(context.Background(), guard, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, webhook := range found.Webhooks {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(webhook.ClientConfig.CABundle)
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: guard + "." + namespace + ".svc", Roots: roots}); err != nil {
			return fmt.Errorf("%s: %w", webhook.Name, err)
		}
	}
	if !slices.ContainsFunc(found.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == guard }) {
		return fmt.Errorf("no write of %s is recorded", guard)
	}
	return nil
}

// The certificates of a validating webhook are published, trusted and renewed, also by a process
// whose manager is connected to another cluster.
func TestAValidatingWebhookOnAnotherCluster(t *testing.T) {
	kit.Must(t, install())
	createGuard(t)
	keeper := startGuard(t)
	secrets := admin.CoreV1().Secrets(namespace)
	var leaf *x509.Certificate
	var ca string
	for _, step := range []struct {
		name, patch string
		renewsCA    bool
	}{
		{"the first pair", `{}`, true},
		{"another pair of the same CA", `{"data": {"tls.crt": null}}`, false},
		{"another CA", `{"data": {"ca.key": null}}`, true},
	} {
		kit.Must(t, kit.ErrorOf(secrets.Patch(context.Background(), guard, types.MergePatchType, []byte(step.patch), metav1.PatchOptions{})))
		former := leaf
		kit.EventuallyNil(t, func() error {
			served, err := keeper.GetCertificate(nil)
			if err != nil {
				return err
			}
			if former != nil && former.Equal(served.Leaf) {
				return fmt.Errorf("%s: the former certificate is served", step.name)
			}
			leaf = served.Leaf
			return keeper.Ready(nil)
		})
		kit.Must(t, verifyGuard(leaf))
		check.Equal(t, "issuer", guard+"-ca", leaf.Issuer.CommonName)
		stored, err := secrets.Get(context.Background(), guard, metav1.GetOptions{})
		kit.Must(t, err)
		check.Equal(t, step.name+": the CA is another", step.renewsCA, string(stored.Data["ca.crt"]) != ca)
		ca = string(stored.Data["ca.crt"])
	}
	<-keeper.Trusted()
}
