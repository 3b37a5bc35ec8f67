package hooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// marker stands for a token wherever one may be sent.
const marker = "MARKER-of-a-token-that-nobody-may-see"

// world is an endpoint with its CA, over real TLS, and a clock. At its end, the test fails on
// any token or key in logs, metrics and answers.
type world struct {
	*testing.T

	clock    *clocktesting.FakeClock
	secret   *memory
	issuer   *Issuer
	server   *Server
	apps     *applications
	actions  *actions
	log      *lines
	registry *prometheus.Registry
	address  string

	mu      sync.Mutex
	answers []string
	secrets []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	w := &world{
		T: t, clock: clocktesting.NewFakeClock(time.Now()), secret: &memory{}, log: &lines{}, registry: prometheus.NewRegistry(),
		apps: &applications{known: map[types.NamespacedName]*application.Application{}}, actions: &actions{},
		address: inner.Addr().String(), secrets: []string{marker, "PRIVATE KEY"},
	}
	w.issuer = w.newIssuer()
	w.server, err = NewServer(ServerOptions{
		Issuer: w.issuer, Applications: w.apps, Actions: w.actions, Now: w.clock.Now, Registerer: w.registry,
		Logger: funcr.New(w.log.add, funcr.Options{Verbosity: 10}),
	})
	kit.Must(t, err)
	t.Cleanup(w.search)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, inner) }()
	t.Cleanup(func() {
		stop()
		check.Must(t, <-ended)
	})
	return w
}

// newIssuer returns the issuer of another replica, with the same Secret.
func (w *world) newIssuer() *Issuer {
	w.Helper()
	endpoint, err := ParseEndpoint("https://" + w.address)
	kit.Must(w, err)
	issuer := NewIssuer(w.secret, "", endpoint, w.clock.Now, funcr.New(w.log.add, funcr.Options{Verbosity: 10}))
	kit.Must(w, issuer.Look(w.Context()))
	return issuer
}

func (w *world) search() {
	metrics, err := w.registry.Gather()
	check.Must(w, err)
	seen := map[string]string{"the log": w.log.String(), "the metrics": fmt.Sprint(metrics), "the answers": strings.Join(w.answers, "\n")}
	if len(seen["the log"]) == 0 || len(seen["the metrics"]) == 0 {
		w.Error("nothing was logged, or counted: nothing could be found")
	}
	for where, text := range seen {
		for _, secret := range w.secrets {
			if strings.Contains(text, secret) {
				w.Errorf("%s have a token or a key: %s", where, text)
			}
		}
	}
}

// pod holds a Pod's variables and files of a hook.
type pod struct {
	token, url string
	files      map[string][]byte
}

// run creates an Application with all hooks, and returns the data of its Pods, by hook.
func (w *world) run(name string) (*application.Application, map[application.Hook]pod) {
	w.Helper()
	app := &application.Application{
		NamespacedName: types.NamespacedName{Namespace: "demo", Name: name},
		UID:            types.UID("uid-of-" + name),
		Spec:           application.Spec{Hooks: application.Hooks{Complete: true, Shutdown: true}},
		Status:         application.Status{State: application.StateRunning},
		Hooks:          application.HookRecord{Tokens: map[application.Hook]string{}},
	}
	pods := map[application.Hook]pod{}
	for _, hook := range app.Spec.Hooks.Enabled() {
		pods[hook] = w.pod(app, hook, pod{})
		app.Hooks.Tokens[hook] = application.DigestOf([]byte(pods[hook].token))
	}
	w.apps.put(app)
	return app, pods
}

// pod returns a Pod's data after a renewal of the former.
func (w *world) pod(app *application.Application, hook application.Hook, former pod) pod {
	w.Helper()
	secret := w.data(app.NamespacedName, app.UID, hook, false, map[string][]byte{application.TokenKey(hook): []byte(former.token)})
	files := w.data(app.NamespacedName, app.UID, hook, true, former.files)
	made := pod{token: string(secret[application.TokenKey(hook)]), url: string(secret[application.URLKey(hook)]), files: files}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets = append(w.secrets, made.token, strings.Split(string(files[application.PrivateKeyKey]), "\n")[1])
	return made
}

// data returns what replaces the former data of a Secret: that of the token, or that of the certificates.
func (w *world) data(app types.NamespacedName, uid types.UID, hook application.Hook, certificates bool, former map[string][]byte) map[string][]byte {
	w.Helper()
	data, err := w.issuer.Data(app, uid, hook, certificates, former)
	kit.Must(w, err)
	return data
}

// newWorldWithPod returns a world with an Application, and its Pods' data of the hook complete.
func newWorldWithPod(t *testing.T) (*world, pod) {
	t.Helper()
	w := newWorld(t)
	_, pods := w.run("web")
	return w, pods[application.Complete]
}

func (p pod) body() string { return `{"token": "` + p.token + `"}` }

// request is one request. The zero values stand for a PUT of JSON.
type request struct {
	method, url, contentType, body string
	header                         map[string]string
	chunked                        bool
	// files are those of the client certificate. from is the sender's address.
	files map[string][]byte
	from  string
}

// request returns the request of a Pod that uses all of its data.
func (p pod) request() request { return request{url: p.url, body: p.body(), files: p.files} }

type answered struct {
	code   int
	header http.Header
	body   string
}

func (w *world) send(r request) (answered, error) {
	w.Helper()
	if r.method == "" {
		r.method = http.MethodPut
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	var body io.Reader = strings.NewReader(r.body)
	if r.chunked {
		body = io.MultiReader(body)
	}
	sent, err := http.NewRequestWithContext(w.Context(), r.method, r.url, body)
	kit.Must(w, err)
	sent.Header.Set("Content-Type", r.contentType)
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	response, err := w.client(r.files, r.from).Do(sent)
	if err != nil {
		return answered{}, err
	}
	text, err := io.ReadAll(response.Body)
	check.Must(w, response.Body.Close())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, fmt.Sprint(response.Header), string(text))
	return answered{response.StatusCode, response.Header, string(text)}, err
}

func (w *world) code(r request) int {
	w.Helper()
	got, err := w.send(r)
	kit.Must(w, err)
	return got.code
}

func (w *world) checkCode(what string, r request, want int) {
	w.Helper()
	check.Equal(w, what+": code", want, w.code(r))
}

// client returns a client that trusts the CA of the files, or the present CA.
func (w *world) client(files map[string][]byte, from string) *http.Client {
	w.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), Time: w.clock.Now}
	if files == nil {
		present, err := w.issuer.present()
		kit.Must(w, err)
		files = map[string][]byte{application.CABundleKey: pki.Encode(present.Leaf)}
	}
	config.RootCAs.AppendCertsFromPEM(files[application.CABundleKey])
	if files[application.CertificateKey] != nil {
		pair, err := tls.X509KeyPair(files[application.CertificateKey], files[application.PrivateKeyKey])
		kit.Must(w, err)
		// Whichever CAs the server accepts.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	dialer := &net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: config, DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// memory has one Secret, which is lost only with its process.
type memory struct {
	corev1client.SecretInterface

	mu               sync.Mutex
	certificate, key []byte
	version          int
	stored           int
	fails            error
	before           func() // called before an update
}

func (m *memory) Secrets(string) corev1client.SecretInterface { return m }

func (m *memory) Get(context.Context, string, metav1.GetOptions) (*corev1.Secret, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(m.version)},
		Data:       map[string][]byte{corev1.TLSCertKey: m.certificate, corev1.TLSPrivateKeyKey: m.key},
	}, m.fails
}

func (m *memory) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if secret.ResourceVersion != strconv.Itoa(m.version) {
		return nil, apierrors.NewConflict(corev1.Resource("secrets"), AuthoritySecret, errors.New("it has changed"))
	}
	m.certificate, m.key = secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	m.version++
	m.stored++
	return secret, nil
}

// put stores a CA as another client.
func (m *memory) put(certificate, key []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.certificate, m.key = certificate, key
	m.version++
}

type applications struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*application.Application
	fails error
	asked int
}

func (a *applications) Get(_ context.Context, name types.NamespacedName) (*application.Application, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return a.known[name], a.fails
}

func (a *applications) reads() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func (a *applications) put(app *application.Application) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[app.NamespacedName] = app
}

// actions answers as the agent does, and records the calls.
type actions struct {
	mu    sync.Mutex
	asked []string
	fails error
	wait  chan struct{}
}

func (a *actions) take(ctx context.Context, name string, app *application.Application) error {
	if a.wait != nil {
		select {
		case <-a.wait:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fails == nil {
		a.asked = append(a.asked, name+" "+app.String())
	}
	return a.fails
}

func (a *actions) Complete(ctx context.Context, app *application.Application) (application.State, error) {
	return application.StateDeleting, a.take(ctx, "complete", app)
}

func (a *actions) Shutdown(ctx context.Context, app *application.Application) (application.State, error) {
	return app.Status.State, a.take(ctx, "shutdown", app)
}

func (a *actions) Retry(ctx context.Context, app *application.Application) (application.State, error) {
	if app.Status.State != application.StateDegraded {
		return "", ErrNotDegraded
	}
	return app.Status.State, a.take(ctx, "retry", app)
}

// done returns the calls since the last time.
func (a *actions) done() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, prefix, args)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
