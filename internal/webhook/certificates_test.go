package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// secretOf has a new certificate with this serial number, and its key.
func secretOf(t *testing.T, serial int64) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}

// served is the serial number of what is served, 0 if nothing is.
func served(t *testing.T, p *pair) int64 {
	t.Helper()
	current, err := p.get(nil)
	if err != nil {
		return 0
	}
	certificate, err := x509.ParseCertificate(current.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return certificate.SerialNumber.Int64()
}

// A renewed pair is served at once; whatever else the Secret comes to hold, the
// former one is served on.
func TestLoad(t *testing.T) {
	first, second := secretOf(t, 1), secretOf(t, 2)
	with := func(key string, value []byte) *corev1.Secret {
		changed := second.DeepCopy()
		changed.Data[key] = value
		return changed
	}
	cases := []struct {
		name   string
		object any
		want   int64
	}{
		{"a renewed pair", second, 2},
		{"the same pair", first, 1},
		{"an empty Secret, as it is shipped", &corev1.Secret{}, 1},
		{"a certificate without its key", with(corev1.TLSPrivateKeyKey, nil), 1},
		{"a key without its certificate", with(corev1.TLSCertKey, nil), 1},
		{"a key of another certificate", with(corev1.TLSPrivateKeyKey, first.Data[corev1.TLSPrivateKeyKey]), 1},
		{"no certificate at all", with(corev1.TLSCertKey, []byte("x")), 1},
		{"another object", &corev1.ConfigMap{}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &pair{certDir: t.TempDir(), logger: logr.Discard()}
			if got := served(t, p); got != 0 {
				t.Errorf("%d is served before there is a certificate", got)
			}
			p.load(first)
			p.load(c.object)
			if got := served(t, p); got != c.want {
				t.Errorf("%d is served, want %d", got, c.want)
			}
		})
	}
}

// The key is in memory and in the Secret, and on no disk; the certificate, which
// is no secret, is there for cert-controller to see that it is in use.
func TestNoKeyOnDisk(t *testing.T) {
	p := &pair{certDir: t.TempDir(), logger: logr.Discard()}
	secret := secretOf(t, 1)
	for range 2 {
		p.load(secret)
	}
	written := map[string]string{}
	folder := os.DirFS(p.certDir)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		if bytes.Contains(content, []byte("PRIVATE")) {
			t.Errorf("%s holds a key", name)
		}
		written[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{corev1.TLSCertKey: string(secret.Data[corev1.TLSCertKey])}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
