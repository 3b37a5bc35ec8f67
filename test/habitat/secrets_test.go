package habitat

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A Secret that is deleted later is reported as missing. Nothing restarts, and drift is
// still repaired.
func TestSecretIsDeleted(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	h.secret(t, "web-config", "user.toml")
	h.run(t, service("web", 2, object{"service": with("web", "standalone", object{"configSecretName": "web-config"})}))
	set, pods := h.get(t, kit.StatefulSets, "web").GetUID(), uids(h.pods(t, "web"))
	h.delete(t, kit.Secrets, "web-config")
	h.mustSay(t, "web", "Accepted", metav1.ConditionFalse, "SecretNotFound")
	h.mustTell(t, "web", "Warning", "SecretNotFound", "web-config")
	h.patch(t, kit.StatefulSets, "web", "hand", `{"metadata": {"labels": {"habitat": "changed"}}}`)
	h.eventuallyField(t, "true", kit.StatefulSets, "web", "metadata", "labels", "habitat")
	// A change is not carried out before the Secret is back.
	h.edit(t, "web", `{"image": "registry.test/hab/web:2"}`)
	h.awaitCalm(t)
	h.mustStay(t, kit.StatefulSets, "web", set)
	if got := imageOf(h.get(t, kit.StatefulSets, "web")); got != "registry.test/hab/web:1" {
		t.Errorf("the image is %v although the Secret is missing", got)
	}
	if diff := gocmp.Diff(pods, uids(h.pods(t, "web"))); diff != "" {
		t.Errorf("Pods were replaced: -before +after\n%s", diff)
	}
	h.secret(t, "web-config", "user.toml")
	h.mustRoll(t, "web", "registry.test/hab/web:2")
	h.mustRun(t, "web")
	// Only the kubelet reads the content of the Secret.
	from := h.awaitCalm(t)
	h.patch(t, kit.Secrets, "web-config", "user", fmt.Sprintf(`{"stringData": {"user.toml": "%s-changed"}}`, canary))
	h.awaitCalm(t)
	if made := worked(t, from, h.namespace); len(made) > 0 {
		t.Errorf("the content of a Secret has changed, and written was %v", made)
	}
}

// Where krake-habitat may not look for Secrets, as everywhere after the installation, the Habitat is carried out, and names the
// Secrets that were not looked for.
func TestSecretsThatItMayNotReadAreTheKubelets(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.kubectl(t, "delete", "rolebinding", "krake-habitat-secrets")
	h.create(t, habitats, service("web", 1, object{"service": with("web", "standalone", object{"configSecretName": "web-config"})}))
	message := h.mustSay(t, "web", "Accepted", metav1.ConditionTrue, "Accepted")
	if !hasAll(message, []string{`"web-config"`, "krake-habitat-secrets"}) {
		t.Errorf("the condition says %q", message)
	}
	h.mustAppear(t, kit.StatefulSets, "web", "")
}

// detour is a proxy in front of an API server that reads the answers.
type detour struct {
	*httptest.Server

	needles [][]byte

	mu       sync.Mutex
	requests []string // about Secrets, with the formats that they accept
	others   int
	told     []string // all requests whose answers contain the value of a Secret
}

func newDetour(t *testing.T, p *plane) *detour {
	t.Helper()
	target, err := url.Parse(p.URL())
	kit.Must(t, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(p.RESTConfig()))
	kit.Must(t, err)
	d := &detour{needles: needles()}
	d.Server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			r.Out.Header.Del("Accept-Encoding") // so that the answer can be read
		},
		ModifyResponse: d.note, Transport: transport, FlushInterval: -1,
	})
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
	})
	return d
}

// note records a request, and reads its answer while it is passed on.
func (d *detour) note(response *http.Response) error {
	request := response.Request.Method + " " + response.Request.URL.Path + " " + response.Request.Header.Get("Accept")
	d.mu.Lock()
	defer d.mu.Unlock()
	if strings.Contains(response.Request.URL.Path, "/secrets") {
		d.requests = append(d.requests, request)
	} else {
		d.others++
	}
	response.Body = &overheard{ReadCloser: response.Body, detour: d, request: request}
	return nil
}

// overheard is an answer that is searched for values of Secrets.
type overheard struct {
	io.ReadCloser

	detour  *detour
	request string
	last    []byte // the end of the previous piece
}

func (o *overheard) Read(buffer []byte) (int, error) {
	n, err := o.ReadCloser.Read(buffer)
	text := append(o.last, buffer[:n]...)
	if slices.ContainsFunc(o.detour.needles, func(needle []byte) bool { return bytes.Contains(text, needle) }) {
		o.detour.mu.Lock()
		o.detour.told = append(o.detour.told, o.request)
		o.detour.mu.Unlock()
	}
	o.last = bytes.Clone(text[max(0, len(text)-2*len(canary)):])
	return n, err
}

// heard returns and clears the records.
func (d *detour) heard() (requests, told []string, others int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	requests, told, others = d.requests, d.told, d.others
	d.requests, d.told, d.others = nil, nil, 0
	return requests, told, others
}

// kubeconfig writes a copy of a file that leads through the detour.
func (d *detour) kubeconfig(t *testing.T, from string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(from)
	kit.Must(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw})
	for _, each := range config.Clusters {
		each.Server, each.CertificateAuthorityData = d.URL, certificate
	}
	to := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, clientcmd.WriteToFile(*config, to))
	return to
}

// The controllers ask for Secrets by name, and never receive their content: no answer has
// the value of one. A proxy in front of the API server reads all answers. The same account
// receives the values if it requests the Secrets themselves, so the form of the request
// matters.
func TestSecretsAreNotRead(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.secret(t, "web-config", "user.toml")
	from, err := h.installation.HabitatKubeconfig(t.Context())
	kit.Must(t, err)
	d := newDetour(t, h.plane)
	kubeconfig := d.kubeconfig(t, from)
	process, err := h.installation.RunHabitat(t.Context(), "habitat-detour", kubeconfig, "--namespaces="+h.namespace)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, process.Process().Kill()) })
	kit.Must(t, process.WaitReady(t.Context()))
	h.run(t, service("web", 1, object{"service": with("web", "standalone", object{"configSecretName": "web-config"})}))
	h.patch(t, kit.Secrets, "web-config", "user", fmt.Sprintf(`{"stringData": {"user.toml": "%s-changed"}}`, canary))
	h.delete(t, kit.Secrets, "web-config")
	h.mustSay(t, "web", "Accepted", metav1.ConditionFalse, "SecretNotFound")
	h.secret(t, "web-config", "user.toml")
	h.mustSay(t, "web", "Accepted", metav1.ConditionTrue, "Accepted")
	requests, told, others := d.heard()
	t.Logf("%d requests, and about Secrets %q", others, requests)
	if len(requests) == 0 || others == 0 {
		t.Error("the proxy has seen nothing")
	}
	for _, request := range told {
		t.Errorf("the value of a Secret was told to %s", request)
	}
	h.hearLog(t, process.Process().Log())

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	kit.Must(t, err)
	config.UserAgent = thief
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	_, err = client.CoreV1().Secrets(h.namespace).Get(t.Context(), "web-config", metav1.GetOptions{})
	kit.Must(t, err)
	if _, err := client.CoreV1().Secrets(h.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list of Secrets: %v", err)
	}
	if _, told, _ := d.heard(); len(told) == 0 {
		t.Error("the proxy does not see the values of Secrets where they are told")
	}
}
