package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	pairRotations      = 3
	authorityRotations = 3

	serverName = "krake-webhook.krake-system.svc"
)

// The pair and the CA are replaced several times while
// Applications are continuously created and changed: none of these requests fails.
func TestRotationFailsNoRequest(t *testing.T) {
	kit.Long(t, "an outage of each kind")
	allowTime(t) // 40 admissions at once take seconds on a busy machine, and no rotation is to blame
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	seen := watchRotation(t)
	connections := installed.Connections()

	var dryRuns, stored, afresh tally
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		parallel(4, func(worker int) { admitDryRuns(ctx, t, &dryRuns, namespace, worker) })
	})
	load.Go(func() { admitReal(ctx, t, &stored, namespace) })
	for range pairRotations {
		seen.rotate(t, "tls.crt", func(before, now *x509.Certificate) bool { return !now.Equal(before) })
		handshakeAfresh(t, &afresh, namespace)
	}
	for range authorityRotations {
		// It runs from before the change until after it, because the served and the
		// trusted certificates differ only for a moment.
		during(t.Context(), func(context.Context) { handshakeAfresh(t, &afresh, namespace) }, func() {
			seen.rotate(t, "ca.key", func(before, now *x509.Certificate) bool {
				return !bytes.Equal(now.AuthorityKeyId, before.AuthorityKeyId)
			})
		})
		handshakeAfresh(t, &afresh, namespace)
	}
	stop()
	load.Wait()

	dryRuns.check(t, "admissions, dry run")
	stored.check(t, "admissions")
	afresh.check(t, "admissions by new connections")
	seen.check(t)
	opened := installed.Connections() - connections
	t.Logf("the API server opened %d connections to the webhook", opened)
	if opened < pairRotations+authorityRotations {
		t.Error("not every pair was seen by the API server")
	}
}

// rotation has the certificates that each replica has served, by address.
type rotation struct {
	pairs, authorities map[string]map[string]bool
}

func watchRotation(t *testing.T) *rotation {
	t.Helper()
	r := &rotation{pairs: map[string]map[string]bool{}, authorities: map[string]map[string]bool{}}
	for _, address := range installed.Addresses() {
		r.pairs[address], r.authorities[address] = map[string]bool{}, map[string]bool{}
	}
	if len(r.pairs) != 2 {
		t.Fatalf("%d replicas, want 2", len(r.pairs))
	}
	return r
}

// rotate requests a new certificate as an administrator does: it removes a key from the
// Secret. It waits until all replicas serve the new one.
func (r *rotation) rotate(t *testing.T, key string, isNew func(before, now *x509.Certificate) bool) {
	t.Helper()
	before := map[string]*x509.Certificate{}
	for address := range r.pairs {
		before[address] = serving(t, address)
	}
	hub.Change(t, kit.Secrets, "krake-system", "krake-webhook-certificate", `{"data": {"`+key+`": null}}`)
	for address := range r.pairs {
		kit.Eventually(t, func() string {
			now := serving(t, address)
			r.pairs[address][string(now.Raw)] = true
			r.authorities[address][string(now.AuthorityKeyId)] = true
			if isNew(before[address], now) {
				return ""
			}
			return fmt.Sprintf("after the removal of %s, %s serves the certificate %v", key, address, now.SerialNumber)
		})
	}
}

// check fails if a replica has served fewer certificates than were requested.
func (r *rotation) check(t *testing.T) {
	t.Helper()
	for address := range r.pairs {
		pairs, authorities := len(r.pairs[address]), len(r.authorities[address])
		t.Logf("%s served %d pairs, of %d CAs", address, pairs, authorities)
		if pairs < pairRotations+authorityRotations || authorities < authorityRotations {
			t.Errorf("%s served %d pairs of %d CAs", address, pairs, authorities)
		}
	}
}

// serving returns the certificate of a replica, which must verify with the
// configuration's CAs.
func serving(t *testing.T, address string) *x509.Certificate {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{
		ServerName:         serverName,
		InsecureSkipVerify: true, //nolint:gosec // verified below, by what is read after the certificate
		MinVersion:         tls.VersionTLS12,
	}}
	ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
	defer cancel()
	connection, err := dialer.DialContext(ctx, "tcp", address)
	kit.Must(t, err)
	defer connection.Close()
	leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]

	configuration, err := hub.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "krake-webhook", metav1.GetOptions{})
	kit.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle)
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: serverName, Roots: roots}); err != nil {
		t.Errorf("%s serves what nobody trusts: %v", address, err)
	}
	return leaf
}

// pace is the pause between requests, so that the load is constant, and below the
// machine's limit.
const pace = 50 * time.Millisecond

// admitDryRuns continuously creates and updates Applications as dry runs.
func admitDryRuns(ctx context.Context, t *testing.T, admissions *tally, namespace string, worker int) {
	t.Helper()
	client := editor.client(t).CoreV1().ConfigMaps(namespace)
	for round := 0; ctx.Err() == nil; round++ {
		created := newApplication(namespace, fmt.Sprintf("dry-%d", worker))
		admissions.count(func() error { return kit.ErrorOf(client.Create(t.Context(), created, dryRun)) })
		change := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/round": "%d"}}, "data": {"spec.manifest": %q}}`,
			round, newApplication(namespace, fmt.Sprintf("web-%d", round)).Data[application.ManifestKey])
		admissions.count(func() error {
			return kit.ErrorOf(client.Patch(t.Context(), "web", types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: dryRun.DryRun}))
		})
		time.Sleep(pace)
	}
}

// admitReal creates, changes and deletes Applications.
func admitReal(ctx context.Context, t *testing.T, admissions *tally, namespace string) {
	t.Helper()
	client := editor.client(t).CoreV1().ConfigMaps(namespace)
	for round := 0; ctx.Err() == nil; round++ {
		name := fmt.Sprintf("real-%d", round)
		created := newApplication(namespace, name)
		admissions.count(func() error { return kit.ErrorOf(client.Create(t.Context(), created, metav1.CreateOptions{})) })
		admissions.count(func() error {
			return kit.ErrorOf(client.Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"metadata": {"annotations": {"example.com/note": "x"}}}`), metav1.PatchOptions{}))
		})
		admissions.count(func() error { return client.Delete(t.Context(), name, metav1.DeleteOptions{}) })
		time.Sleep(4 * pace)
	}
}

// handshakeAfresh makes the API server open new connections: with its open ones, it
// would never see a new certificate. It delays so many requests at once that the server
// needs more connections than it keeps.
func handshakeAfresh(t *testing.T, admissions *tally, namespace string) {
	t.Helper()
	const requests, patience = 40, 300 * time.Millisecond // far below the webhook's timeout
	client := editor.client(t).CoreV1().ConfigMaps(namespace)
	before := installed.Connections()
	opened := func() bool { return installed.Connections() > before }
	for !opened() {
		err := installed.HangWebhook()
		var all sync.WaitGroup
		for n := range requests {
			all.Go(func() {
				created := kit.Application(namespace, fmt.Sprintf("afresh-%d", n), "[]") // costs the webhook no requests of its own
				admissions.count(func() error { return kit.ErrorOf(client.Create(t.Context(), created, dryRun)) })
			})
		}
		for deadline := time.Now().Add(patience); !opened() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		err = errors.Join(err, installed.ResumeWebhook())
		all.Wait()
		if err != nil {
			t.Error(err)
			return
		}
	}
}
