package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// provideBinaries builds the programs, outside of the time limit of the calling test.
func provideBinaries(t *testing.T) {
	t.Helper()
	started := time.Now()
	_, err := Build(t.Context(), os.Stderr)
	must(t, err)
	t.Logf("programs found or built in %s", time.Since(started).Round(time.Millisecond))
}

// A cluster does what the tests of the product need, and is gone after Stop.
func TestCluster(t *testing.T) {
	provideBinaries(t)
	started := time.Now()
	c, err := Start(t.Context(), Options{Scheduler: true})
	must(t, err)
	t.Cleanup(func() { _ = c.Stop() }) // testStop checks the error
	t.Logf("started in %s", time.Since(started).Round(time.Millisecond))
	client := newClient(t, c)

	t.Run("controllers act on a Deployment, the scheduler on its Pod", func(t *testing.T) { testControllers(t, client) })
	t.Run("the audit log has the request with its body", func(t *testing.T) { testAuditLog(t, c, client) })
	t.Run("kubectl works with the kubeconfig", func(t *testing.T) { testKubectl(t, c) })
	t.Run("a ServiceAccount authenticates with its token", func(t *testing.T) { testToken(t, c, client) })
	t.Run("it can be used as an existing cluster", func(t *testing.T) { testExisting(t, c) })
	t.Run("nothing is left of it", func(t *testing.T) { testStop(t, c, client) })
}

func newClient(t *testing.T, c *Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	must(t, err)
	return client
}

func testControllers(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	_, err := client.AppsV1().Deployments("default").Create(ctx, deploymentOf(1), metav1.CreateOptions{})
	must(t, err)
	eventually(t, 30*time.Second, "a ReplicaSet", func() bool {
		sets, err := client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(sets.Items) == 1 && sets.Items[0].OwnerReferences[0].Name == "web"
	})
	eventually(t, 30*time.Second, "a Pod that the scheduler has no node for", func() bool {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && len(pods.Items[0].Status.Conditions) > 0 &&
			pods.Items[0].Status.Conditions[0].Reason == corev1.PodReasonUnschedulable
	})
}

// testAuditLog does not wait: the event is there once the request is answered.
func testAuditLog(t *testing.T, c *Cluster, client kubernetes.Interface) {
	for i := range 20 {
		name := fmt.Sprintf("audited-%d", i)
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"for": name}}
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), config, metav1.CreateOptions{})
		must(t, err)
		body := findCreation(t, c, "configmaps", name)
		var sent corev1.ConfigMap
		if err := json.Unmarshal(body, &sent); err != nil || sent.Data["for"] != name {
			t.Fatalf("body of the request for %s: %q, %v", name, body, err)
		}
	}
}

// findCreation returns the body of the request that created the object, or the empty
// string.
func findCreation(t *testing.T, c *Cluster, resource, name string) (body []byte) {
	t.Helper()
	must(t, c.AuditLines(0, func(line []byte) error {
		var event struct {
			Verb          string
			ObjectRef     struct{ Resource, Name string }
			RequestObject json.RawMessage
		}
		err := json.Unmarshal(line, &event)
		if event.Verb == "create" && event.ObjectRef.Resource == resource && event.ObjectRef.Name == name {
			body = event.RequestObject
		}
		return err
	}))
	return body
}

func testKubectl(t *testing.T, c *Cluster) {
	command := exec.Command(c.Kubectl(), "--kubeconfig", c.Kubeconfig(), "get", "deployment", "web", "-o", "name")
	out, err := command.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "deployment.apps/web" {
		t.Errorf("%s: %v: %s", command, err, out)
	}
}

func testToken(t *testing.T, c *Cluster, client kubernetes.Interface) {
	ctx := t.Context()
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	path := filepath.Join(t.TempDir(), "account.kubeconfig")
	must(t, c.WriteKubeconfig(path, "account", token.Status.Token))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:default"; got != want {
		t.Errorf("authenticated as %s, not %s", got, want)
	}
}

// testExisting stops the existing cluster: that must not end the components.
func testExisting(t *testing.T, c *Cluster) {
	t.Setenv("KRAKE_E2E_KUBECONFIG", c.Kubeconfig())
	t.Setenv("KRAKE_E2E_AUDIT_LOG", c.AuditLog())
	var log strings.Builder
	existing, err := Open(t.Context(), Options{Log: &log})
	must(t, err)
	if !strings.HasPrefix(log.String(), "cluster: existing: ") {
		t.Errorf("log: %s", log.String())
	}
	if existing.URL() != c.URL() || existing.AuditLog() != c.AuditLog() || existing.HasKubelet() {
		t.Errorf("URL %s, audit log %s, kubelet %t", existing.URL(), existing.AuditLog(), existing.HasKubelet())
	}
	sleeper, err := existing.Run("sleeper", exec.Command("sleep", "1000"))
	must(t, err)
	if err := existing.Stop(); err != nil || !sleeper.Ended() {
		t.Errorf("stop: %v; its process has ended: %t", err, sleeper.Ended())
	}
	for _, p := range c.Processes() {
		if p.Ended() {
			t.Errorf("%s has ended", p.Name())
		}
	}
}

// testStop stops the cluster while a client watches: the API server must not
// wait for it to end.
func testStop(t *testing.T, c *Cluster, client kubernetes.Interface) {
	watch, err := client.CoreV1().Pods("").Watch(context.Background(), metav1.ListOptions{})
	must(t, err)
	defer watch.Stop()
	started := time.Now()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("stopped in %s", time.Since(started).Round(time.Millisecond))
	isGone(t, c.Dir())
	for _, p := range c.Processes() {
		if !p.Ended() {
			t.Errorf("%s has not ended", p.Name())
		}
		if p.err != nil && p.err.Error() == "signal: killed" {
			t.Errorf("%s had to be killed", p.Name())
		}
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

// The start of a cluster with a wrong flag reports which component failed and why,
// although its log is already removed.
func TestStartReportsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	provideBinaries(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	_, err := Start(t.Context(), Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("started")
	}
	for _, want := range []string{"kube-apiserver ended: exit status 1", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
	if lines := strings.Count(err.Error(), "\n"); lines > 21 {
		t.Errorf("the error has %d lines", lines)
	}
	isGone(t, dir)
}

// A canceled start ends what it has started.
func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	provideBinaries(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Start(ctx, Options{Dir: dir}); err == nil || ctx.Err() == nil {
		t.Errorf("error: %v, context: %v", err, ctx.Err())
	}
	isGone(t, dir)
}
