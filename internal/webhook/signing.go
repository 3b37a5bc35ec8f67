package webhook

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// signingInterval is how often a replica reads the two Secrets, so that all replicas follow a
	// rotation. signingRetry is the pause after a failure.
	signingInterval = 15 * time.Second
	signingRetry    = 2 * time.Second
)

var errNoSigningKey = errors.New("the webhook has no key to sign with yet: its log says why")

// signing has the key by which all replicas sign Applications. The key is in a Secret that is shipped
// empty. A replica that finds no key there makes one. It publishes the public key before it signs.
type signing struct {
	secrets   corev1client.SecretsGetter
	namespace string
	logger    logr.Logger
	current   atomic.Pointer[keyring]
}

// keyring is the key to sign with, and the public keys by which agents verify.
type keyring struct {
	signer signature.Signer
	public signature.Keys
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *signing) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It reads the Secrets until the context ends. A key that was read
// stays in use while the API server does not answer.
func (s *signing) Start(ctx context.Context) error {
	for {
		pause := wait.Jitter(signingInterval, 0.2)
		if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
			s.logger.Error(err, "The key that Applications are signed with cannot be read or stored")
			pause = signingRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Ready implements healthz.Checker.
func (s *signing) Ready(*http.Request) error {
	_, err := s.keyring()
	return err
}

func (s *signing) keyring() (*keyring, error) {
	if ring := s.current.Load(); ring != nil {
		return ring, nil
	}
	return nil, errNoSigningKey
}

// admitted reports whether the webhook has admitted the Application, by any key that agents accept. One whose agent took
// its label off is admitted again.
func (s *signing) admitted(cm *corev1.ConfigMap) (bool, error) {
	ring, err := s.keyring()
	if err != nil {
		return false, err
	}
	return application.IsAdmitted(cm) && ring.public.Verify(cm) == nil, nil
}

func (s *signing) sign(cm *corev1.ConfigMap) error {
	ring, err := s.keyring()
	if err == nil {
		ring.signer.Sign(cm)
	}
	return err
}

// refresh reads the key, or makes it, and then publishes its public part.
func (s *signing) refresh(ctx context.Context) error {
	signer, err := s.private(ctx)
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", s.namespace, signature.PrivateSecret, err)
	}
	public, err := s.publish(ctx, signer)
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", application.AgentsNamespace, signature.PublicSecret, err)
	}
	s.current.Store(&keyring{signer, public})
	return nil
}

func (s *signing) private(ctx context.Context) (signature.Signer, error) {
	secret, err := s.secrets.Secrets(s.namespace).Get(ctx, signature.PrivateSecret, metav1.GetOptions{})
	if err != nil {
		return signature.Signer{}, missing(err)
	}
	if text := secret.Data[signature.PrivateKey]; len(text) > 0 {
		return signature.ParseSigner(text)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return signature.Signer{}, err
	}
	signer := signature.NewSigner(key)
	text, err := signer.Encode()
	if err != nil {
		return signature.Signer{}, err
	}
	return signer, s.store(ctx, secret, signature.PrivateKey, text)
}

// publish adds the public key to the Secret of the agents, and returns all that are there.
func (s *signing) publish(ctx context.Context, signer signature.Signer) (signature.Keys, error) {
	secret, err := s.secrets.Secrets(application.AgentsNamespace).Get(ctx, signature.PublicSecret, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err)
	}
	name, text, err := signer.Public()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(secret.Data[name], text) {
		if err := s.store(ctx, secret, name, text); err != nil {
			return nil, err
		}
	}
	keys, err := signature.ParseKeys(secret.Data)
	if err != nil {
		s.logger.Error(err, "A public key is not used", "secret", application.AgentsNamespace+"/"+signature.PublicSecret)
	}
	return keys, nil
}

// store adds a key to the data of a Secret as it was read. Another replica that was first causes a
// conflict, and the next refresh reads its key. An error does not quote the value.
func (s *signing) store(ctx context.Context, secret *corev1.Secret, key string, text []byte) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[key] = text
	_, err := s.secrets.Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: name})
	if err != nil {
		return fmt.Errorf("it cannot be written: %s", apierrors.ReasonForError(err))
	}
	return nil
}

func missing(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.New("it does not exist: it is shipped empty, with the webhook: apply the manifests again")
	}
	return err
}
