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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// On a real API server, with the right to get and update the one Secret: replicas
// that start at once have one CA, which outlives them; a Secret that is not there is
// an error that says what to do, and one that people have emptied is filled anew.
func TestSecretKeeper(t *testing.T) {
	h := newHome(t)
	if err := h.issuer().Look(h.ctx); err == nil || !strings.Contains(err.Error(), "apply it") {
		t.Errorf("there is no Secret: %v", err)
	}
	shipped := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: AuthoritySecret, Labels: map[string]string{"app.kubernetes.io/part-of": "krake-observer"}},
		Data:       map[string][]byte{"note": []byte("theirs")},
	}
	if _, err := h.secrets.Create(h.ctx, shipped, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
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
	if err := h.admin.RbacV1().Roles(home).Delete(h.ctx, "hooks", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it may not read any more", func() bool { return running.Look(h.ctx) != nil })
	if err := running.Ready(nil); err != nil {
		t.Errorf("what it has had is gone: %v", err)
	}
}

const home = "krake-agents"

// homeOfAgents is the namespace of the agents on a real API server.
type homeOfAgents struct {
	*testing.T

	ctx     context.Context
	admin   kubernetes.Interface
	agent   kubernetes.Interface
	secrets corev1client.SecretInterface
}

func newHome(t *testing.T) *homeOfAgents {
	t.Helper()
	ctx := context.Background() // the cluster has to outlive the test's own
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	connection := c.RESTConfig()
	h := &homeOfAgents{T: t, ctx: ctx, admin: kubernetes.NewForConfigOrDie(connection)}
	connection.Impersonate.UserName = "agent"
	h.agent, h.secrets = kubernetes.NewForConfigOrDie(connection), h.admin.CoreV1().Secrets(home)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}
	if _, err := h.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := allow(ctx, h.admin, home, "get", "update"); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *homeOfAgents) issuer() *Issuer {
	return NewIssuer(NewSecretKeeper(h.agent.CoreV1(), home), Endpoint{}, time.Now, logr.Discard())
}

func (h *homeOfAgents) lookAtOnce(replicas []*Issuer) {
	h.Helper()
	var all sync.WaitGroup
	for _, replica := range replicas {
		all.Go(func() {
			if err := replica.Look(h.ctx); err != nil {
				h.Error(err)
			}
		})
	}
	all.Wait()
	if h.Failed() {
		h.FailNow()
	}
}

// empty takes the CA out of the Secret, as people do, and complains if there was
// another one, or not all that is theirs.
func (h *homeOfAgents) empty(bundle []byte) {
	h.Helper()
	secret, err := h.secrets.Get(h.ctx, AuthoritySecret, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	if string(secret.Data["note"]) != "theirs" || len(secret.Labels) != 1 || !bytes.Equal(secret.Data[corev1.TLSCertKey], bundle) {
		h.Errorf("the Secret has %d keys, labels %v", len(secret.Data), secret.Labels)
	}
	delete(secret.Data, corev1.TLSCertKey)
	delete(secret.Data, corev1.TLSPrivateKeyKey)
	if _, err := h.secrets.Update(h.ctx, secret, metav1.UpdateOptions{}); err != nil {
		h.Fatal(err)
	}
}

// allow gives the agent rights on the one Secret.
func allow(ctx context.Context, admin kubernetes.Interface, namespace string, verbs ...string) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{AuthoritySecret}, Verbs: verbs},
	}}
	if _, err := admin.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "hooks"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "agent"}},
	}, metav1.CreateOptions{})
	return err
}
