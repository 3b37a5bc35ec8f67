package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The names in the API server's certificate, and the first address of the range of
// Services, which is the API server's own.
var (
	serverAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	serverNames     = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
)

const serviceRange = "10.0.0.0/16"

// controlPlane is a cluster that is being started. All its files are in the cluster's
// folder.
type controlPlane struct {
	*Cluster
	Binaries
	options   Options
	authority *authority
	client    *http.Client // trusts only the authority, and has all rights
	etcdURL   string       // the addresses that other components need
	serverURL string
}

// newControlPlane makes keys and certificates for all components. All servers share one
// certificate, because all are on this machine.
func newControlPlane(c *Cluster, binaries Binaries, options Options) (*controlPlane, error) {
	authority, err := newAuthority("krake-test")
	if err != nil {
		return nil, err
	}
	b := &controlPlane{Cluster: c, Binaries: binaries, options: options, authority: authority}
	if err := b.writeCertificates(); err != nil {
		return nil, err
	}
	b.auditLog = b.file(auditLogFile)
	policy := cmp.Or(options.AuditPolicy, DefaultAuditPolicy)
	return b, errors.Join(os.WriteFile(b.file("audit-policy.yaml"), []byte(policy), 0o600), b.newClient())
}

// file returns a path in the cluster's folder.
func (b *controlPlane) file(elements ...string) string {
	return filepath.Join(b.Dir(), filepath.Join(elements...))
}

// certificate returns the path of a certificate or key.
func (b *controlPlane) certificate(name string) string {
	return b.file("certificates", name)
}

func (b *controlPlane) writeCertificates() error {
	serving, err := b.authority.server(serverAddresses, serverNames...)
	if err != nil {
		return err
	}
	etcdClient, err := b.authority.client("kube-apiserver")
	if err != nil {
		return err
	}
	serviceAccount, err := keyutil.MakeEllipticPrivateKeyPEM() // it signs the tokens of ServiceAccounts
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	return errors.Join(
		certutil.WriteCert(b.certificate("ca.crt"), b.authority.pem),
		serving.write(b.certificate("serving")),
		etcdClient.write(b.certificate("etcd-client")),
		keyutil.WriteKey(b.certificate("service-account.key"), serviceAccount),
		b.writeFrontProxy(),
	)
}

// writeFrontProxy makes the certificate for aggregated API servers. It has a separate
// authority, because a certificate of that authority lets its holder name any user.
func (b *controlPlane) writeFrontProxy() error {
	authority, err := newAuthority("krake-test-front-proxy")
	if err != nil {
		return err
	}
	client, err := authority.client("front-proxy-client")
	if err != nil {
		return err
	}
	return errors.Join(
		certutil.WriteCert(b.certificate("front-proxy-ca.crt"), authority.pem), client.write(b.certificate("front-proxy-client")),
	)
}

// newClient makes the client for health checks. Clients of client-go share connections
// if their configurations are equal, so that these could not be closed.
func (b *controlPlane) newClient() error {
	admin, err := b.authority.client("admin", "system:masters")
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(admin.certificate, admin.key)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(b.authority.certificate)
	b.client = &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}},
		},
	}
	return nil
}

// kubeconfigFor writes the file NAME.kubeconfig for a user with a client certificate.
func (b *controlPlane) kubeconfigFor(name, user string, groups ...string) (string, *clientcmdapi.Config, error) {
	client, err := b.authority.client(user, groups...)
	if err != nil {
		return "", nil, err
	}
	config := newKubeconfig("krake-test",
		&clientcmdapi.Cluster{Server: b.serverURL, CertificateAuthorityData: b.authority.pem},
		name, &clientcmdapi.AuthInfo{ClientCertificateData: client.certificate, ClientKeyData: client.key})
	path := b.file(name + ".kubeconfig")
	return path, config, clientcmd.WriteToFile(*config, path)
}

// awaitServiceAccount waits until the namespace default can have Pods.
func (b *controlPlane) awaitServiceAccount(ctx context.Context) error {
	return b.await(ctx, b.serverURL+"/api/v1/namespaces/default/serviceaccounts/default", nil)
}
