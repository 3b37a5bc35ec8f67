package hooks

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// On a real API server, replicas that start at once share one CA, which outlives them. A missing
// Secret is an error that names the remedy. A Secret that a user has emptied is filled again, and
// the user's own data in it stay.
func TestSecretOfTheAuthority(t *testing.T) {
	shared, err := cluster.Shared(context.WithoutCancel(t.Context()))
	kit.Must(t, err)
	t.Cleanup(func() { check.Must(t, shared.Stop()) })
	plane, err := kit.NewPlane(shared)
	kit.Must(t, err)
	home := plane.NewNamespace(t, "hooks")
	newIssuer := func() *Issuer {
		return NewIssuer(plane.CoreV1(), home, Endpoint{}, time.Now, logr.Discard())
	}
	check.Fails(t, "without a Secret", newIssuer().Look(t.Context()), "apply it")
	_, err = plane.CoreV1().Secrets(home).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: AuthoritySecret, Labels: map[string]string{"app.kubernetes.io/part-of": "krake-observer"}},
		Data:       map[string][]byte{"note": []byte("theirs")},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	var former []byte
	for range 2 {
		replicas := []*Issuer{newIssuer(), newIssuer(), newIssuer(), newIssuer()}
		var all sync.WaitGroup
		for _, replica := range replicas {
			all.Go(func() {
				if err := replica.Look(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		bundle := replicas[0].authority.CertPEM
		for _, replica := range append(replicas, newIssuer()) {
			kit.Must(t, replica.Look(t.Context()))
			if !bytes.Equal(replica.authority.CertPEM, bundle) || bytes.Equal(bundle, former) {
				t.Error("there are two CAs, or it is the former")
			}
		}
		former = bundle
		secret, err := plane.CoreV1().Secrets(home).Get(t.Context(), AuthoritySecret, metav1.GetOptions{})
		kit.Must(t, err)
		if string(secret.Data["note"]) != "theirs" || len(secret.Labels) != 1 || !bytes.Equal(secret.Data[corev1.TLSCertKey], bundle) {
			t.Errorf("the Secret has %d keys, labels %v", len(secret.Data), secret.Labels)
		}
		delete(secret.Data, corev1.TLSCertKey)
		delete(secret.Data, corev1.TLSPrivateKeyKey)
		_, err = plane.CoreV1().Secrets(home).Update(t.Context(), secret, metav1.UpdateOptions{})
		kit.Must(t, err)
	}
}
