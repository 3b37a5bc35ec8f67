package webhook

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// newTestSigning has a key, as after its first refresh.
func newTestSigning() *signing {
	signer := signature.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)))
	name, text, err := signer.Public()
	keys, unread := signature.ParseKeys(map[string][]byte{name: text})
	if err := errors.Join(err, unread); err != nil {
		panic(err)
	}
	s := &signing{}
	s.current.Store(&keyring{signer, keys})
	return s
}

func shippedSecrets() *fake.Clientset {
	return fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "krake-system", Name: signature.PrivateSecret}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: application.AgentsNamespace, Name: signature.PublicSecret}})
}

func replicaOf(server *fake.Clientset) *signing {
	return &signing{secrets: server.CoreV1(), namespace: "krake-system", logger: logr.Discard()}
}

// All replicas have the key that the first one made. After the key is removed, the next refresh makes
// another one, and what the former has signed stays valid.
func TestOneKeyForAllReplicas(t *testing.T) {
	server := shippedSecrets()
	first, second := replicaOf(server), replicaOf(server)
	check.Equal(t, "ready without a key", false, first.Ready(nil) == nil)
	check.Must(t, first.refresh(t.Context()))
	check.Must(t, second.refresh(t.Context()))
	check.Must(t, second.Ready(nil))
	cm := kit.Application("demo", "app", "[]")
	cm.Labels = map[string]string{application.HolderLabel("local"): "true"}
	check.Must(t, first.sign(cm))
	isAdmittedBy := func(replica *signing) bool {
		admitted, err := replica.admitted(cm)
		check.Must(t, err)
		return admitted
	}
	check.Equal(t, "admitted by the other replica", true, isAdmittedBy(second))
	unlabelled := cm.DeepCopy()
	unlabelled.Labels = nil // by its agent, which then does not see it
	admitted, err := second.admitted(unlabelled)
	check.Must(t, err)
	check.Equal(t, "admitted without the label", false, admitted)

	private, err := server.CoreV1().Secrets("krake-system").Get(t.Context(), signature.PrivateSecret, metav1.GetOptions{})
	check.Must(t, err)
	private.Data = nil
	_, err = server.CoreV1().Secrets("krake-system").Update(t.Context(), private, metav1.UpdateOptions{})
	check.Must(t, err)
	check.Must(t, second.refresh(t.Context()))
	check.Equal(t, "admitted after the rotation", true, isAdmittedBy(second))
	former := cm.Annotations[application.SignatureAnnotation]
	check.Must(t, second.sign(cm))
	if cm.Annotations[application.SignatureAnnotation] == former {
		t.Error("the key is the former one")
	}
	check.Must(t, first.refresh(t.Context()))
	check.Equal(t, "admitted by the first replica", true, isAdmittedBy(first))
}

// Without its Secrets, a replica does not sign, and an unreadable key is not replaced.
func TestNoKey(t *testing.T) {
	if err := replicaOf(fake.NewClientset()).refresh(t.Context()); err == nil {
		t.Error("a key without a Secret")
	}
	server := shippedSecrets()
	unreadable := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "krake-system", Name: signature.PrivateSecret}, Data: map[string][]byte{signature.PrivateKey: []byte("x")},
	}
	_, err := server.CoreV1().Secrets("krake-system").Update(t.Context(), unreadable, metav1.UpdateOptions{})
	check.Must(t, err)
	replica := replicaOf(server)
	if err := replica.refresh(t.Context()); err == nil {
		t.Error("an unreadable key was replaced")
	}
	check.Equal(t, "signed", errNoSigningKey, replica.sign(kit.Application("demo", "app", "[]")), cmpopts.EquateErrors())
}
