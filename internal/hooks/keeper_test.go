package hooks

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// On a real API server, with the right to get and update the one Secret: replicas that start
// at once share one CA, which outlives them. A missing Secret is an error that names the
// remedy. A Secret that a user has emptied is filled again.
func TestSecretKeeper(t *testing.T) {
	h := newHome(t)
	if err := h.issuer().Look(h.Context()); err == nil || !strings.Contains(err.Error(), "apply it") {
		t.Errorf("there is no Secret: %v", err)
	}
	shipped := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: AuthoritySecret, Labels: map[string]string{"app.kubernetes.io/part-of": "krake-observer"}},
		Data:       map[string][]byte{"note": []byte("theirs")},
	}
	_, err := h.secrets.Create(h.Context(), shipped, metav1.CreateOptions{})
	kit.Must(t, err)
	var running *Issuer
	for range 5 {
		replicas := []*Issuer{h.issuer(), h.issuer(), h.issuer(), h.issuer()}
		h.lookAtOnce(replicas)
		former := replicas[0].authority.bundle
		for _, replica := range append(replicas, h.issuer()) {
			h.lookAtOnce([]*Issuer{replica})
			if !bytes.Equal(replica.authority.bundle, former) {
				t.Error("there are two CAs")
			}
		}
		running = replicas[0]
		h.empty(former)
		h.lookAtOnce([]*Issuer{running})
		if bytes.Equal(running.authority.bundle, former) {
			t.Error("the CA is the former")
		}
	}
	kit.Must(t, h.plane.RbacV1().Roles(home).Delete(h.Context(), "hooks", metav1.DeleteOptions{}))
	waitFor(t, "it may not read any more", func() bool { return running.Look(h.Context()) != nil })
	if err := running.Ready(nil); err != nil {
		t.Errorf("what it has had is gone: %v", err)
	}
}

const home = "krake-agents"

// homeOfAgents is the namespace of the agents on a real API server.
type homeOfAgents struct {
	*testing.T

	plane   *kit.Plane
	agent   kubernetes.Interface
	secrets corev1client.SecretInterface
}

func newHome(t *testing.T) *homeOfAgents {
	t.Helper()
	plane, err := kit.StartPlane(context.Background(), cluster.Options{}) // the plane has to outlive the test's own context
	kit.Must(t, err)
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	plane.CreateNamespace(t, home)
	plane.Kubectl(t, "create", "role", "hooks", "--namespace", home, "--verb=get,update",
		"--resource=secrets", "--resource-name="+AuthoritySecret)
	plane.Kubectl(t, "create", "rolebinding", "hooks", "--namespace", home, "--role=hooks", "--user=agent")
	connection := plane.RESTConfig()
	connection.Impersonate.UserName = "agent"
	return &homeOfAgents{T: t, plane: plane, agent: kubernetes.NewForConfigOrDie(connection), secrets: plane.CoreV1().Secrets(home)}
}

func (h *homeOfAgents) issuer() *Issuer {
	return NewIssuer(NewSecretKeeper(h.agent.CoreV1(), home), Endpoint{}, time.Now, logr.Discard())
}

func (h *homeOfAgents) lookAtOnce(replicas []*Issuer) {
	h.Helper()
	var all sync.WaitGroup
	for _, replica := range replicas {
		all.Go(func() {
			if err := replica.Look(h.Context()); err != nil {
				h.Error(err)
			}
		})
	}
	all.Wait()
	if h.Failed() {
		h.FailNow()
	}
}

// empty removes the CA from the Secret as a user does. It fails if there was another CA, or if
// the user's own data are missing.
func (h *homeOfAgents) empty(bundle []byte) {
	h.Helper()
	secret, err := h.secrets.Get(h.Context(), AuthoritySecret, metav1.GetOptions{})
	kit.Must(h, err)
	if string(secret.Data["note"]) != "theirs" || len(secret.Labels) != 1 || !bytes.Equal(secret.Data[corev1.TLSCertKey], bundle) {
		h.Errorf("the Secret has %d keys, labels %v", len(secret.Data), secret.Labels)
	}
	delete(secret.Data, corev1.TLSCertKey)
	delete(secret.Data, corev1.TLSPrivateKeyKey)
	_, err = h.secrets.Update(h.Context(), secret, metav1.UpdateOptions{})
	kit.Must(h, err)
}
