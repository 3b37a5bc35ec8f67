package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// addCertificates keeps the certificates in the Secret and the CA in the
// webhook's configuration. The channel is closed when both are in place.
func addCertificates(mgr manager.Manager, options Options) (<-chan struct{}, error) {
	ready := make(chan struct{})
	return ready, rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: options.Namespace, Name: options.Secret},
		CertDir:        options.CertDir,
		CAName:         "krake-webhook-ca",
		CAOrganization: "krake.dev",
		DNSName:        fmt.Sprintf("%s.%s.svc", options.Service, options.Namespace),
		IsReady:        ready,
		Webhooks:       []rotator.WebhookInfo{{Name: options.Configuration, Type: rotator.Mutating}},
		FieldOwner:     name,
		// Every replica serves, so every replica has to get ready.
		RequireLeaderElection: false,
	})
}

// pair is the serving certificate, as the Secret has it now. It is served from
// memory: a renewed one is served at once, and no key is written to a disk.
type pair struct {
	certDir string
	logger  logr.Logger
	current atomic.Pointer[tls.Certificate]
}

// watch follows the Secret; the manager's cache holds no other.
func (p *pair) watch(ctx context.Context, mgr manager.Manager) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    p.load,
		UpdateFunc: func(_, object any) { p.load(object) },
	})
	return err
}

// load takes over the pair of the Secret. One that is incomplete, as at the
// first start, is passed over.
func (p *pair) load(object any) {
	secret, ok := object.(*corev1.Secret)
	if !ok || len(secret.Data[corev1.TLSCertKey]) == 0 {
		return
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		p.logger.Error(err, "load the serving certificate")
		return
	}
	p.current.Store(&certificate)
	p.logger.Info("serving certificate loaded")
	// cert-controller takes the file for the sign that the certificate is in use.
	if err := os.WriteFile(filepath.Join(p.certDir, corev1.TLSCertKey), secret.Data[corev1.TLSCertKey], 0o600); err != nil {
		p.logger.Error(err, "write the serving certificate")
	}
}

// get implements tls.Config.GetCertificate.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := p.current.Load(); current != nil {
		return current, nil
	}
	return nil, errors.New("no serving certificate yet")
}
