package hooks

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var web = types.NamespacedName{Namespace: "demo", Name: "web"}

// The Secret of the token has a token and a URL. Valid values stay.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	w.code(request{url: "https://" + w.address})
	tests := []struct {
		why    string
		former string
		kept   bool
	}{
		{"one of ours", strings.Repeat("A", 43), true},
		{"none", "", false},
		{"too short", strings.Repeat("A", 42), false},
		{"with padding", strings.Repeat("A", 43) + "=", false},
		{"of the other alphabet", strings.Repeat("+", 43), false},
		{"with bits that mean nothing", strings.Repeat("A", 42) + "B", false},
		{"with a line within", strings.Repeat("A", 20) + "\n" + strings.Repeat("A", 22), false},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		for _, hook := range []application.Hook{application.Complete, application.Shutdown} {
			former := map[string][]byte{application.TokenKey(hook): []byte(test.former), application.URLKey(hook): []byte("https://elsewhere"), "more": nil}
			data := w.data(web, "u1", hook, false, former)
			got := string(data["krake_"+string(hook)+"_token"])
			want := map[string][]byte{
				"krake_" + string(hook) + "_token": []byte(got),
				"krake_" + string(hook) + "_url":   []byte("https://" + w.address + "/kubernetes/namespaces/demo/applications/web/" + string(hook)),
			}
			check.Equal(t, test.why, want, data)
			if (got == test.former) != test.kept || len(got) != 43 {
				t.Errorf("%s: got %q", test.why, got)
			}
			if !test.kept && seen[got] {
				t.Errorf("%s: %q was there before", test.why, got)
			}
			seen[got] = true
		}
	}
}

// The Secret of the certificates keeps a pair while it is this hook's, valid and not due.
// Anything else is replaced.
func TestCertificates(t *testing.T) {
	w := newWorld(t)
	w.code(request{url: "https://" + w.address})
	ours := w.data(web, "u1", application.Complete, true, nil)
	other := w.data(web, "u1", application.Complete, true, nil)
	tests := []struct {
		why    string
		former map[string][]byte
		kept   bool
	}{
		{"as it was", ours, true},
		{"another bundle", with(ours, "ca-bundle.pem", []byte("x")), true},
		{"nothing", nil, false},
		{"no key", with(ours, "key.pem", nil), false},
		{"no certificate", with(ours, "cert.pem", nil), false},
		{"the key of another", with(ours, "key.pem", other["key.pem"]), false},
		{"a certificate and more", with(ours, "cert.pem", append(bytes.Clone(ours["cert.pem"]), ours["ca-bundle.pem"]...)), false},
		{"that of another hook", w.data(web, "u1", application.Shutdown, true, nil), false},
		{"that of another UID", w.data(web, "u2", application.Complete, true, nil), false},
		{"that of another name", w.data(types.NamespacedName{Namespace: "demo", Name: "web2"}, "u1", application.Complete, true, nil), false},
		{"that of another namespace", w.data(types.NamespacedName{Namespace: "demo2", Name: "web"}, "u1", application.Complete, true, nil), false},
	}
	present, err := w.issuer.present()
	kit.Must(t, err)
	for _, test := range tests {
		got := w.data(web, "u1", application.Complete, true, test.former)
		if kept := bytes.Equal(got["cert.pem"], test.former["cert.pem"]) && bytes.Equal(got["key.pem"], test.former["key.pem"]); kept != test.kept {
			t.Errorf("%s: kept is %v", test.why, kept)
		}
		if !bytes.Equal(got["ca-bundle.pem"], pki.Encode(present.Leaf)) || len(got) != 3 {
			t.Errorf("%s: the bundle is not the CA, or there is more: %d keys", test.why, len(got))
		}
	}
}

// A client certificate names its Application, the serving certificate is valid for the one host,
// and each is valid for no other use.
func TestUsesOfCertificates(t *testing.T) {
	w := newWorld(t)
	w.code(request{url: "https://" + w.address}) // something is logged and counted
	made := w.data(web, "u1", application.Complete, true, nil)
	pair, err := pki.ParsePair(made["cert.pem"], made["key.pem"])
	kit.Must(t, err)
	leaf := pair.Leaf
	if leaf.Subject.String() != "CN=system:complete-hook" || leaf.URIs[0].String() != "krake://demo/web/u1" || leaf.IsCA ||
		leaf.NotAfter.Sub(w.clock.Now()).Round(time.Minute) != 365*day || w.clock.Now().Sub(leaf.NotBefore).Round(time.Minute) != time.Hour ||
		leaf.PublicKeyAlgorithm != x509.ECDSA || len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		t.Errorf("%s, %v, %s to %s", leaf.Subject, leaf.URIs, leaf.NotBefore, leaf.NotAfter)
	}
	served, err := w.issuer.certificate(nil)
	kit.Must(t, err)
	leaf = served.Leaf
	if leaf.VerifyHostname("127.0.0.1") != nil || leaf.VerifyHostname("localhost") == nil || leaf.IsCA ||
		len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		t.Errorf("%v %v, for %v", leaf.DNSNames, leaf.IPAddresses, leaf.ExtKeyUsage)
	}
}

func with(data map[string][]byte, key string, value []byte) map[string][]byte {
	changed := maps.Clone(data)
	changed[key] = value
	return changed
}

// An unknown owner gets no data.
func TestDataOfNobody(t *testing.T) {
	w := newWorld(t)
	w.code(request{url: "https://" + w.address})
	for why, data := range map[string]func() (map[string][]byte, error){
		"no UID":       func() (map[string][]byte, error) { return w.issuer.Data(web, "", application.Complete, true, nil) },
		"no such hook": func() (map[string][]byte, error) { return w.issuer.Data(web, "u", "retry", false, nil) },
		"no CA yet": func() (map[string][]byte, error) {
			return NewIssuer(w.secret, "", w.issuer.endpoint, w.clock.Now, logr.Discard()).Data(web, "u", application.Complete, true, nil)
		},
	} {
		if got, err := data(); err == nil || got != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// Everything is renewed before it expires. Pods with the latest result of Data are accepted at
// any time, and Pods with a result of a year ago are not.
func TestRenewal(t *testing.T) {
	w := newWorld(t)
	app, pods := w.run("web")
	pod, first := pods[application.Complete], pods[application.Complete]
	made, authorities, replaced := 0, 1, w.secret.stored
	for passed := time.Duration(0); passed < 12*year; passed += 10 * day {
		w.clock.Step(10 * day)
		kit.Must(t, w.issuer.Look(t.Context()))
		renewed := w.pod(app, application.Complete, pod)
		check.Equal(t, "token", pod.token, renewed.token)
		if !bytes.Equal(renewed.files["cert.pem"], pod.files["cert.pem"]) {
			made++
		}
		pod = renewed
		check.Equal(t, "code after "+passed.String(), http.StatusOK, w.code(pod.request()))
	}
	authorities += w.secret.stored - replaced
	if made < 16 || made > 22 || authorities != 2 {
		t.Errorf("%d certificates and %d CAs were made", made, authorities)
	}
	if _, err := w.send(request{url: first.url, body: first.body(), files: first.files}); err == nil {
		t.Error("the first certificate is good still")
	}
}

// A client whose certificate is from another CA of any kind gets no answer, nor does one with
// the server's own pair.
func TestForeignAuthority(t *testing.T) {
	w := newWorld(t)
	app, pods := w.run("web")
	pod := pods[application.Complete]
	id := identityOf(app.NamespacedName, app.UID, application.Complete)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	kit.Must(t, err)
	for why, key := range map[string]crypto.Signer{"RSA": rsaKey, "ECDSA": newKey(t)} {
		subject := pkix.Name{CommonName: authorityName, Organization: []string{manifest.Domain}}
		bundle, bundleKey := authorityPEM(t, key, w.clock.Now(), subject, authorityValidity)
		foreign, err := pki.ParseCA(bundle, bundleKey, authorityName, w.clock.Now())
		kit.Must(t, err)
		certificate, private, err := clientPair(foreign, id, nil, w.clock.Now())
		kit.Must(t, err)
		files := map[string][]byte{"ca-bundle.pem": pod.files["ca-bundle.pem"], "cert.pem": certificate, "key.pem": private}
		if got, err := w.send(request{url: pod.url, body: pod.body(), files: files}); err == nil {
			t.Errorf("%s: %d %s", why, got.code, got.body)
		}
		// The Secret with such a pair gets another one.
		if bytes.Equal(w.data(app.NamespacedName, app.UID, application.Complete, true, files)["cert.pem"], certificate) {
			t.Errorf("%s: the pair is kept", why)
		}
		// No client accepts that CA for the server.
		if _, err := w.send(request{url: pod.url, body: pod.body(), files: with(pod.files, "ca-bundle.pem", pki.Encode(foreign.Leaf))}); err == nil {
			t.Errorf("%s: the server is trusted", why)
		}
	}
	present, err := w.issuer.present()
	kit.Must(t, err)
	served, err := present.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "system:complete-hook"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, w.clock.Now(), day)
	kit.Must(t, err)
	if _, err := w.send(request{url: pod.url, body: pod.body(), files: with(with(pod.files, "cert.pem", served.CertPEM), "key.pem", served.KeyPEM)}); err == nil {
		t.Error("a serving certificate is taken for that of a client")
	}
	check.Empty(t, "done", w.actions.done())
}

// authorityPEM returns a CA with this key.
func authorityPEM(t *testing.T, key crypto.Signer, now time.Time, subject pkix.Name, validity time.Duration) (certificate, private []byte) {
	t.Helper()
	template := &x509.Certificate{
		Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	kit.Must(t, err)
	private, err = x509.MarshalPKCS8PrivateKey(key)
	kit.Must(t, err)
	return pki.Encode(&x509.Certificate{Raw: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// A replica that loses the race between Load and Store uses the stored CA.
func TestConflict(t *testing.T) {
	now := time.Now()
	other, err := keepAuthority(nil, nil, now)
	kit.Must(t, err)
	secrets := &memory{}
	secrets.before = func() { secrets.put(other.CertPEM, other.KeyPEM) }
	issuer := NewIssuer(secrets, "", Endpoint{}, func() time.Time { return now }, logr.Discard())
	kit.Must(t, issuer.Look(t.Context()))
	if secrets.stored != 0 || !bytes.Equal(issuer.authority.CertPEM, other.CertPEM) {
		t.Errorf("it has a CA of its own, and has stored %d", secrets.stored)
	}
}

// An unusable Secret is not overwritten, and the error names the remedy. A replica that had a
// CA before continues with it.
func TestRubbish(t *testing.T) {
	now := time.Now()
	ours, err := keepAuthority(nil, nil, now)
	kit.Must(t, err)
	other, err := keepAuthority(nil, nil, now)
	kit.Must(t, err)
	certificate, key := ours.CertPEM, ours.KeyPEM
	leaf, leafKey, err := clientPair(ours, identityOf(web, "u", application.Complete), nil, now)
	kit.Must(t, err)
	signer := newKey(t)
	theirs := pkix.Name{CommonName: "their own"}
	ended, endedKey := authorityPEM(t, signer, now.Add(-2*day), theirs, day)
	later, laterKey := authorityPEM(t, signer, now.Add(2*day), theirs, day)
	for _, test := range []struct {
		why              string
		certificate, key []byte
		want             string
	}{
		{"no PEM", []byte(marker), []byte(marker), "the certificate is not one block of PEM"},
		{"a key that is none", certificate, []byte(marker), "the key is not one block of PEM"},
		{"no key", certificate, nil, "there is no key"},
		{"no certificate", nil, key, "there is no certificate"},
		{"the key of another CA", certificate, other.KeyPEM, "do not belong together"},
		{"two certificates", append(bytes.Clone(certificate), certificate...), key, "one block"},
		{"no CA", leaf, leafKey, "not that of a CA"},
		{"one of theirs that has ended", ended, endedKey, "expired on"},
		{"one that is not valid yet", later, laterKey, "valid from"},
	} {
		secrets := &memory{}
		secrets.put(test.certificate, test.key)
		issuer := NewIssuer(secrets, "", Endpoint{}, func() time.Time { return now }, logr.Discard())
		text := fmt.Sprint(issuer.Look(t.Context()))
		if !strings.Contains(text, test.want) || !strings.Contains(text, "remove tls.crt and tls.key") ||
			strings.Contains(text, marker) || strings.Contains(text, "PRIVATE") {
			t.Errorf("%s: %s", test.why, text)
		}
		if secrets.stored > 0 || issuer.Ready(nil) == nil {
			t.Errorf("%s: overwritten, or taken", test.why)
		}
		issuer.take(ours)
		if err := issuer.Look(t.Context()); err == nil || issuer.Ready(nil) != nil {
			t.Errorf("%s: who had one before has none: %v", test.why, err)
		}
	}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	return key
}

// A CA of the administrator is used, and never replaced.
func TestTheirAuthority(t *testing.T) {
	w := newWorld(t)
	app, pods := w.run("web")
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	kit.Must(t, err)
	w.secret.put(authorityPEM(t, signer, w.clock.Now(), pkix.Name{CommonName: "their own"}, 20*day))
	kit.Must(t, w.issuer.Look(t.Context()))
	stored := w.secret.stored
	pod := w.pod(app, application.Complete, pods[application.Complete])
	w.checkCode("the request", pod.request(), http.StatusOK)
	former := pods[application.Complete]
	check.Equal(t, "what the former CA has signed is kept", false, bytes.Equal(former.files["cert.pem"], pod.files["cert.pem"]))
	w.clock.Step(19*day + 23*time.Hour)
	if err := w.issuer.Look(t.Context()); err != nil || w.secret.stored != stored {
		t.Errorf("%d stored: %v", w.secret.stored, err)
	}
	if again := w.pod(app, application.Complete, pod); !bytes.Equal(again.files["cert.pem"], pod.files["cert.pem"]) {
		t.Error("a certificate is made again and again at the end of its CA")
	}
	w.checkCode("at its end", pod.request(), http.StatusOK)
}

// The CA is looked up until it exists, and the endpoint listens only then.
func TestStart(t *testing.T) {
	w := newWorld(t)
	w.code(request{url: "https://" + w.address})
	secrets := &memory{fails: errors.New("the API server is away")}
	issuer := NewIssuer(secrets, "", w.issuer.endpoint, w.clock.Now, w.server.options.Logger)
	server := *w.server
	server.options.Issuer, server.options.Address = issuer, "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- issuer.Start(ctx) }()
	go func() { ended <- server.Start(ctx) }()
	kit.EventuallyTrue(t, "it is said", func() bool { return strings.Contains(w.log.String(), "the API server is away") })
	check.Equal(t, "it is ready without a CA", false, issuer.Ready(nil) == nil)
	secrets.mu.Lock()
	secrets.fails = nil
	secrets.mu.Unlock()
	kit.EventuallyTrue(t, "there is a CA", func() bool { return issuer.Ready(nil) == nil })
	stop()
	check.Must(t, errors.Join(<-ended, <-ended))
}
