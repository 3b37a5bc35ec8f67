package pki_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The names differ from the shipped ones: other packages use the cluster, too.
const (
	namespace     = "certificates-system"
	holder        = service + "-certificate"
	configuration = service
	service       = "certificates-webhook"
	dnsName       = service + "." + namespace + ".svc"
	overlap       = 10 * tick
	// tick is the step of the tests' clock. Changes that arrive through a watch are seen at
	// most one tick late.
	tick = time.Second
)

var (
	shared *cluster.Cluster
	// admin has all rights. webhook is the shipped ServiceAccount.
	admin   kubernetes.Interface
	webhook *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { shared = c }))
}

// own replaces the shipped names. The API server calls this webhook only for ConfigMaps of its
// own namespaces.
var own = strings.NewReplacer("krake-system", namespace, "krake-webhook", service, "krake-metrics-reader", "certificates-metrics-reader",
	"operator: NotIn", "operator: In")

// install applies the shipped files about certificates, once.
var install = sync.OnceValue(func() error {
	var err error
	if admin, err = kubernetes.NewForConfig(shared.RESTConfig()); err != nil {
		return err
	}
	if _, err := kubectl("apply"); err != nil {
		return err
	}
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(context.Background(), service, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	webhook = rest.AnonymousClientConfig(shared.RESTConfig())
	webhook.BearerToken, webhook.QPS = token.Status.Token, -1
	return nil
})

// kubectl runs kubectl on the shipped files.
func kubectl(arguments ...string) (string, error) {
	var shipped strings.Builder
	for _, name := range []string{"namespace.yaml", "rbac.yaml", "configuration.yaml"} {
		content, err := fs.ReadFile(manifests.Files, "base/webhook/"+name)
		if err != nil {
			return "", err
		}
		shipped.WriteString("---\n" + own.Replace(string(content)))
	}
	said, err := kit.TryKubectl(context.Background(), shared, shipped.String(), append(arguments, "--namespace", namespace, "-f", "-")...)
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, said)
	}
	return said, nil
}

// world is a cluster with a clock, and with the shipped Secret and configuration of the
// webhook. It records all states of the configuration.
type world struct {
	*testing.T

	log *log

	mu       sync.Mutex
	now      time.Time
	replicas map[*replica]bool
	bundles  []published
	verified map[seen]error
	samples  int
	broken   string
}

// published is a bundle of the configuration, with the time since which it applies.
type published struct {
	at      time.Time
	version int
	bundle  []byte
}

// seen is a served certificate beside a state of the configuration, by its index.
type seen struct {
	leaf  *x509.Certificate
	state int
}

type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newWorld returns when its watch has started. At its end, the test fails on errors or keys in
// the log.
func newWorld(t *testing.T) *world {
	kit.Must(t, install())
	w := &world{T: t, log: &log{}, now: time.Now(), replicas: map[*replica]bool{}, verified: map[seen]error{}}
	w.change(`{"data": null}`)
	w.setBundle(nil)
	w.record()
	t.Cleanup(func() {
		text := w.log.String()
		for line := range strings.Lines(text) {
			// A replica that is stopped reports what it could not finish.
			if strings.Contains(line, `"level":"ERROR"`) && !strings.Contains(line, "context canceled") {
				t.Error("an error was logged: ", line)
			}
		}
		if strings.Contains(text, "PRIVATE") {
			t.Error("a key was logged")
		}
		if t.Failed() {
			t.Log(text)
		}
	})
	return w
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) record() {
	current := w.configuration()
	w.bundles = []published{{w.now, versionOf(current), bundleOf(current)}}
	ctx, stop := context.WithCancel(context.Background())
	watch, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + configuration, ResourceVersion: current.ResourceVersion,
	})
	kit.Must(w, err)
	done := make(chan struct{})
	w.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if changed, ok := event.Object.(*admissionv1.MutatingWebhookConfiguration); ok {
				w.mu.Lock()
				w.bundles = append(w.bundles, published{w.now, versionOf(changed), bundleOf(changed)})
				w.mu.Unlock()
			}
		}
		if ctx.Err() == nil {
			w.Error("the watch of the configuration ended")
		}
	}()
}

// versionOf returns a number that grows with each change. The API allows the comparison for
// objects of one kind.
func versionOf(configuration *admissionv1.MutatingWebhookConfiguration) int {
	version, err := strconv.Atoi(configuration.ResourceVersion)
	if err != nil {
		panic(err)
	}
	return version
}

func bundleOf(configuration *admissionv1.MutatingWebhookConfiguration) []byte {
	return configuration.Webhooks[0].ClientConfig.CABundle
}

func (w *world) last() published {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bundles[len(w.bundles)-1]
}

// wait waits for a step that takes an overlap. It advances the clock only after every replica
// has seen the published CA, and stops at the end of the overlap. A tick changes the Secret,
// so a replica that is creating a key has to begin again. Each tick triggers a check by the
// replicas, because their timers use another time.
func (w *world) wait(what string, done func() bool) {
	w.Helper()
	var over time.Time
	w.until(what+", or the overlap begins", func() bool {
		var begun bool
		over, begun = w.overlapEnds()
		return begun || done()
	})
	for !done() && w.Now().Before(over) {
		version := versionOf(w.configuration())
		w.until("the configuration is seen here", func() bool { return w.last().version >= version })
		w.pass(tick)
	}
	w.until(what, done)
}

// overlapEnds returns the time from which the next CA of the Secret may sign, according to the
// last replica that saw it. There is no such time before all have seen it.
func (w *world) overlapEnds() (at time.Time, begun bool) {
	block, _ := pem.Decode(w.secret().Data["next-ca.crt"])
	if block == nil {
		return at, false
	}
	next, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return at, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.replicas {
		since, seen := r.TrustedSince(next)
		if !seen {
			return at, false
		}
		if end := since.Add(overlap); end.After(at) {
			at = end
		}
	}
	return at, true
}

// pass advances the clock, and triggers a check by the replicas.
func (w *world) pass(time time.Duration) {
	w.Helper()
	w.mu.Lock()
	w.now = w.now.Add(time)
	now := w.now.String()
	w.mu.Unlock()
	w.change(fmt.Sprintf(`{"metadata": {"annotations": {"clock": %q}}}`, now))
}

// until waits for a step that does not depend on the clock.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	kit.EventuallyTrue(w, "not yet: "+what, done)
}

// observe checks every replica all the time. API servers that know any state of the
// configuration within nearly an overlap must accept the served certificate.
func (w *world) observe() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				w.sample()
			}
		}
	}()
	w.Cleanup(func() {
		close(stop)
		<-done
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Logf("%d samples, %d states of the configuration", w.samples, len(w.bundles))
		if w.broken != "" {
			w.Error(w.broken)
		}
	})
}

func (w *world) sample() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.replicas {
		select {
		case <-r.Trusted():
		default:
			continue // it does not serve yet
		}
		leaf := r.leaf()
		for i, known := range w.bundles {
			replaced := i+1 < len(w.bundles) && !w.bundles[i+1].at.After(w.now.Add(2*tick-overlap))
			if replaced || len(known.bundle) == 0 {
				continue
			}
			w.samples++
			if err := w.verify(seen{leaf, i}); err != nil && w.broken == "" {
				w.broken = fmt.Sprintf("with the configuration of %s before (the %d. of %d): %v", w.now.Sub(known.at), i+1, len(w.bundles), err)
			}
		}
	}
}

// verify verifies as the API server does. The caller holds the lock.
func (w *world) verify(s seen) error {
	if s.leaf == nil {
		return errors.New("nothing is served")
	}
	if err, known := w.verified[s]; known {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.bundles[s.state].bundle)
	_, err := s.leaf.Verify(x509.VerifyOptions{
		DNSName: dnsName, Roots: roots, CurrentTime: w.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	w.verified[s] = err
	return err
}

// replica is a Keeper in a manager of its own, with the webhook's rights.
type replica struct {
	*pki.Keeper
	stop func()
}

func (w *world) start() *replica {
	w.Helper()
	mgr, err := ctrl.NewManager(webhook, manager.Options{
		Logger:                 logr.FromSlogHandler(slog.NewJSONHandler(w.log, nil)),
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: new(true)},
	})
	kit.Must(w, err)
	keeper, err := pki.Add(mgr, webhook, nil, pki.Options{
		Name: service, Namespace: namespace, Service: service, Secret: holder, Configuration: configuration,
		Validity: 90 * 24 * time.Hour, CAValidity: 5 * 365 * 24 * time.Hour, Overlap: overlap,
	}, w.Now)
	kit.Must(w, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	r := &replica{Keeper: keeper}
	r.stop = sync.OnceFunc(func() {
		w.mu.Lock()
		delete(w.replicas, r)
		w.mu.Unlock()
		stop()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	w.mu.Lock()
	w.replicas[r] = true
	w.mu.Unlock()
	w.Cleanup(r.stop)
	return r
}

// started starts replicas at once, and waits until they can serve.
func (w *world) started(number int) []*replica {
	w.Helper()
	var all []*replica
	for range number {
		all = append(all, w.start())
	}
	for _, r := range all {
		select {
		case <-r.Trusted():
		case <-time.After(kit.Timeout):
			w.Fatal("a replica is not trusted")
		}
	}
	return all
}

func (r *replica) leaf() *x509.Certificate {
	if served, err := r.GetCertificate(nil); err == nil {
		return served.Leaf
	}
	return nil
}

func (w *world) secret() *corev1.Secret {
	w.Helper()
	secret, err := admin.CoreV1().Secrets(namespace).Get(context.Background(), holder, metav1.GetOptions{})
	kit.Must(w, err)
	return secret
}

func (w *world) configuration() *admissionv1.MutatingWebhookConfiguration {
	w.Helper()
	found, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(context.Background(), configuration, metav1.GetOptions{})
	kit.Must(w, err)
	return found
}

// change applies a merge patch to the Secret as a user, in spite of the replicas.
func (w *world) change(patch string) {
	w.Helper()
	_, err := admin.CoreV1().Secrets(namespace).Patch(context.Background(), holder, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	kit.Must(w, err)
}

func (w *world) remove(keys ...string) {
	w.Helper()
	w.change(`{"data": {"` + strings.Join(keys, `": null, "`) + `": null}}`)
}

// setBundle writes the bundle of the configuration, bypassing the replicas.
func (w *world) setBundle(bundle []byte) {
	w.Helper()
	value, err := json.Marshal(bundle)
	kit.Must(w, err)
	kit.Must(w, patchConfiguration(types.JSONPatchType, `[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": `+string(value)+`}]`))
}

func patchConfiguration(kind types.PatchType, patch string) error {
	_, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(context.Background(), configuration, kind, []byte(patch), metav1.PatchOptions{})
	return err
}
