package hooks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// AuthoritySecret names the Secret with the CA, in the namespace of the agent. It is
// shipped empty. The CA is in its keys tls.crt and tls.key.
const AuthoritySecret = "krake-hooks-ca" //nolint:gosec // a name, and nothing that is secret

// ErrConflict is the error of [Keeper.Store] if another client has stored a CA since the
// last Load.
var ErrConflict = errors.New("another client has stored a CA")

// Keeper stores the CA for all replicas of an agent, across their restarts.
type Keeper interface {
	// Load returns the stored CA. Both are empty if none is stored yet.
	Load(ctx context.Context) (certificate, key []byte, err error)
	// Store stores the CA, unless another client has stored one since Load.
	Store(ctx context.Context, certificate, key []byte) error
}

// SecretKeeper stores the CA in an existing Secret. It gets and updates this Secret
// and no other.
type SecretKeeper struct {
	secrets   corev1client.SecretsGetter
	namespace string

	mu     sync.Mutex
	loaded *corev1.Secret
}

// NewSecretKeeper makes a Keeper of the Secret [AuthoritySecret] in the namespace.
func NewSecretKeeper(secrets corev1client.SecretsGetter, namespace string) *SecretKeeper {
	return &SecretKeeper{secrets: secrets, namespace: namespace}
}

// Load implements Keeper.
func (k *SecretKeeper) Load(ctx context.Context) (certificate, key []byte, err error) {
	secret, err := k.secrets.Secrets(k.namespace).Get(ctx, AuthoritySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("read the Secret %s/%s: %w: the overlay for hooks has an empty one, which the agent fills: apply it", k.namespace, AuthoritySecret, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the Secret %s/%s: %w", k.namespace, AuthoritySecret, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded = secret
	return secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], nil
}

// Store implements Keeper. Other keys of the Secret stay.
func (k *SecretKeeper) Store(ctx context.Context, certificate, key []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.loaded == nil {
		return fmt.Errorf("write the Secret %s/%s: %w", k.namespace, AuthoritySecret, ErrConflict)
	}
	secret := k.loaded.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = certificate, key
	stored, err := k.secrets.Secrets(k.namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: "krake-agent-hooks"})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("write the Secret %s/%s: %w", k.namespace, AuthoritySecret, ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("write the Secret %s/%s: %w", k.namespace, AuthoritySecret, withoutValues(err))
	}
	k.loaded = stored
	return nil
}

// withoutValues returns an error without any part of the request, which an API server or
// one of its webhooks may quote.
func withoutValues(err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err
	}
	return fmt.Errorf("the API server answers %d %s", answer.Status().Code, answer.Status().Reason)
}
