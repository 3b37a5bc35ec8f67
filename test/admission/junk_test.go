package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check/hostile"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Any client that reaches the port of the webhook can post to it. Such
// posts use bounded memory, and do not delay the API server's requests.
func TestPostsToTheWebhookCostNoMemoryAndNoTurn(t *testing.T) {
	kit.Long(t, "many large posts")
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	target := newTarget(t)
	t.Run("1,000 posts of junk at once", func(t *testing.T) { postJunk(t, target, namespace) })
	t.Run("a review by hand", func(t *testing.T) { reviewByHand(t, target, namespace) })
	mustHeal(t, namespace, "web")
}

// target is a replica of the webhook, which the test reaches without the API server.
type target struct {
	address string
	client  *http.Client
	pids    []int // of all replicas
}

func newTarget(t *testing.T) *target {
	t.Helper()
	configuration, err := hub.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "krake-webhook", metav1.GetOptions{})
	kit.Must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle) {
		t.Fatal("the configuration has no CA")
	}
	trust := &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS13}
	dialer := &net.Dialer{LocalAddr: stranger(t)}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: trust, DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	found := &target{
		address: installed.Addresses()[0],
		client:  &http.Client{Transport: transport, Timeout: kit.Timeout},
	}
	for _, process := range hub.Processes() {
		select {
		case <-process.Exited():
		default:
			if strings.HasPrefix(process.Name(), "webhook-") {
				found.pids = append(found.pids, process.PID())
			}
		}
	}
	return found
}

// stranger is an address other than the API server's. The webhook distinguishes senders
// by address.
func stranger(t *testing.T) net.Addr {
	t.Helper()
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		t.Logf("this system has one address of its own, so that junk comes from where the API server is: %v", err)
		return nil
	}
	kit.Must(t, listener.Close())
	return address
}

// post posts a body as the API server would. Code 0 means that the connection ended
// without an answer.
func (g *target) post(ctx context.Context, body io.Reader) (code int, answer string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+g.address+"/mutate-application", body)
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := g.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, err.Error()
	}
	return response.StatusCode, string(text)
}

// junk returns bodies of mixed sizes: invalid reviews, and reviews of invalid objects.
func junk(namespace string) [][]byte {
	review := func(manifest string) []byte {
		app := newApplication(namespace, "junk")
		app.Data[application.ManifestKey] = manifest
		return reviewOf("root", app)
	}
	many := strings.Repeat("{apiVersion: v1, kind: Service, metadata: {name: NAME}, spec: {ports: [{port: 80}]}}\n---\n", 99)
	return [][]byte{
		[]byte("junk"),
		[]byte("{}"),
		[]byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`),
		bytes.Repeat([]byte("["), 100<<10),
		append(append([]byte(`{"a":"`), bytes.Repeat([]byte("x"), 6<<20)...), `"}`...),
		bytes.Repeat([]byte{0}, 600<<10),
		review("a: " + strings.Repeat("[", 200<<10)),
		review(many),
		review("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " + strings.Repeat("x", 250<<10) + "}}"),
		review("a: &a " + strings.Repeat("x", 100<<10) + "\nb: [" + strings.Repeat("*a, ", 3000) + "]"),
		review(strings.Repeat("- \n", 80<<10)),
		reviewOf("root", nil),
	}
}

// reviewOf returns the review that the API server would post if the user created the
// object.
func reviewOf(u user, object any) []byte {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "x", "operation": "CREATE", "namespace": "default", "name": "junk",
			"kind":     map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"},
			"resource": map[string]any{"group": "", "version": "v1", "resource": "configmaps"},
			"userInfo": map[string]any{"username": string(u)},
			"object":   object,
		},
	})
	if err != nil {
		panic(err) // it can be encoded
	}
	return text
}

// allowTime has the API server wait longer for the webhook. On a busy machine, the handshakes of a thousand
// connections alone take some of the usual 10 s from an admission that has its turn at once.
func allowTime(t *testing.T) {
	t.Helper()
	configurations := hub.AdmissionregistrationV1().MutatingWebhookConfigurations()
	set := func(seconds int) error {
		patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": %d}]`, seconds)
		return kit.ErrorOf(configurations.Patch(context.WithoutCancel(t.Context()), "krake-webhook", types.JSONPatchType, patch, metav1.PatchOptions{}))
	}
	kit.Must(t, set(30))
	t.Cleanup(func() { kit.Must(t, set(10)) })
}

// postJunk posts a thousand requests at once, while Applications are admitted. It shows that they are, and that memory
// stays bounded; that senders take turns is tested in internal/webhook/limit.
func postJunk(t *testing.T, g *target, namespace string) {
	t.Helper()
	allowTime(t)
	bodies := junk(namespace)
	var admissions tally
	var mu sync.Mutex
	answers := map[int]int{}
	client := editor.client(t).CoreV1().ConfigMaps(namespace)
	during(t.Context(), func(ctx context.Context) {
		admissions.count(func() error { return kit.ErrorOf(client.Create(ctx, newApplication(namespace, "new"), dryRun)) })
	}, func() {
		parallel(1000, func(worker int) {
			code, _ := g.post(t.Context(), bytes.NewReader(bodies[worker%len(bodies)]))
			mu.Lock()
			defer mu.Unlock()
			answers[code]++
		})
	})
	t.Logf("answers by code: %v", answers)
	admissions.check(t, "real admissions meanwhile")
	if admitted := admissions.len(); admitted < 8 {
		t.Errorf("%d real admissions meanwhile: they wait behind the junk", admitted)
	}
	limit := hostile.LimitOf(t, "base/webhook/deployment.yaml")
	for _, pid := range g.pids {
		peak := kit.PeakMemory(t, pid)
		t.Logf("a webhook's peak of memory: %d MiB", peak>>20)
		if peak >= limit {
			t.Errorf("a webhook has taken %d MiB, want less than its limit of %d", peak>>20, limit>>20)
		}
	}
}

// reviewByHand posts a review that names a user. The answer reveals only whether the
// user has the rights that the manifest needs.
func reviewByHand(t *testing.T, g *target, namespace string) {
	t.Helper()
	for _, u := range []user{low, root} {
		code, answer := g.post(t.Context(), bytes.NewReader(reviewOf(u, newApplication(namespace, "junk"))))
		t.Logf("about %s: %d %s", u, code, answer)
		if code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
		for _, word := range []string{"rolebinding", "RBAC", "clusterrole", string(editor) + `"`, string(admin) + `"`} {
			if strings.Contains(answer, word) {
				t.Errorf("the answer says %s: %s", word, answer)
			}
		}
	}
	if get(t, "default", "junk") != nil {
		t.Error("a review by hand has stored something")
	}
	quotaByHand(t, g, namespace)
}

// quotaByHand posts a review of an Application that a quota forbids. The webhook finds that out by a
// dry run, and does not tell.
func quotaByHand(t *testing.T, g *target, namespace string) {
	t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "secret-quota"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("1")}},
	}
	quotas := hub.CoreV1().ResourceQuotas(namespace)
	kit.Must(t, kit.ErrorOf(quotas.Create(t.Context(), quota, metav1.CreateOptions{})))
	t.Cleanup(func() { kit.Must(t, quotas.Delete(context.Background(), quota.Name, metav1.DeleteOptions{})) })
	kit.EventuallyTrue(t, "the quota has no status", func() bool {
		live, err := quotas.Get(t.Context(), quota.Name, metav1.GetOptions{})
		return err == nil && len(live.Status.Hard) > 0
	})
	since := hub.Mark(t)
	review := bytes.Replace(reviewOf(root, newApplication(namespace, "junk")), []byte(`"namespace":"default"`), fmt.Appendf(nil, `"namespace":%q`, namespace), 1)
	kit.Eventually(t, func() string { // the dry runs of a second are bounded
		code, answer := g.post(t.Context(), bytes.NewReader(review))
		if code != http.StatusOK || strings.Contains(answer, "quota") {
			t.Errorf("%d: %s", code, answer)
		}
		for _, r := range since.Requests(t, kit.By("system:serviceaccount:krake-system:krake-webhook"), kit.In(namespace)) {
			if r.Status.Code == http.StatusForbidden && strings.Contains(r.Status.Message, "secret-quota") {
				return ""
			}
		}
		return "the webhook has not tried the Service"
	})
}
