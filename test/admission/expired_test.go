package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// expired is a webhook with an expired certificate. It would admit everything, but the
// API server never reaches it.
type expired struct {
	url         string
	authority   []byte // PEM
	connections atomic.Int64
}

func startExpired(t *testing.T) *expired {
	t.Helper()
	serving, authority := expiredPair(t)
	e := &expired{authority: authority}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes are meant to fail
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			e.connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// expiredPair returns a certificate that expired an hour ago, and its valid authority.
func expiredPair(t *testing.T) (serving tls.Certificate, authority []byte) {
	t.Helper()
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	caText, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	kit.Must(t, err)
	leafText, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	kit.Must(t, err)
	return tls.Certificate{Certificate: [][]byte{leafText}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caText})
}

// configure registers the expired webhook too, for the Applications of one namespace:
// with the shipped configuration after change. It waits until that takes effect.
func (e *expired) configure(t *testing.T, namespace string, change func(*admissionregistrationv1.MutatingWebhook)) {
	t.Helper()
	configurations := hub.AdmissionregistrationV1().MutatingWebhookConfigurations()
	shipped, err := configurations.Get(t.Context(), "krake-webhook", metav1.GetOptions{})
	kit.Must(t, err)
	webhook := shipped.Webhooks[0]
	webhook.Name = "test.krake.dev"
	webhook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &e.url, CABundle: e.authority}
	webhook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	change(&webhook)
	const name = "krake-test"
	_, err = configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{webhook},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, configurations.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	kit.EventuallyTrue(t, "the API server does not call "+e.url, func() bool {
		err := create(t, root, newApplication(namespace, "probe"), dryRun)
		return e.connections.Load() > 0 || strings.Contains(errorText(err), webhook.Name)
	})
}

// shipped is the configuration that withoutConfiguration has deleted, as the manifests have it: without a CA, which the webhook adds.
var shipped *admissionregistrationv1.MutatingWebhookConfiguration

// withoutConfiguration deletes the shipped configuration until the test ends.
func withoutConfiguration(t *testing.T) {
	t.Helper()
	configurations := hub.AdmissionregistrationV1().MutatingWebhookConfigurations()
	found, err := configurations.Get(t.Context(), "krake-webhook", metav1.GetOptions{})
	kit.Must(t, err)
	kit.Must(t, configurations.Delete(t.Context(), found.Name, metav1.DeleteOptions{}))
	found.ObjectMeta = metav1.ObjectMeta{Name: found.Name, Labels: found.Labels, Annotations: found.Annotations}
	found.Webhooks[0].ClientConfig.CABundle = nil
	shipped = found
	t.Cleanup(func() { restore(t) })
	kit.Must(t, installed.WaitNotCalled(t.Context()))
}

// restore creates the shipped configuration again, if it is not there, as an administrator would.
func restore(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, err := hub.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, shipped, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		kit.Must(t, err)
	}
	kit.Must(t, installed.WaitCalled(ctx))
}
