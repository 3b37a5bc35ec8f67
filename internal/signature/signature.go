// Package signature proves to agents that the webhook has admitted an Application.
//
// The webhook signs cluster, namespace, name and intent of an Application with an Ed25519 key, and
// writes the signature into an annotation. An agent has only the public keys. A user who writes a
// ConfigMap while no webhook runs, or before it was installed, has no signature for its intent.
//
// A signature does not expire, and does not name the UID, which is unknown at admission: the
// signature of a former Application of the same name is valid for the intent that it had.
package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// PrivateSecret is the Secret with the private key, in the namespace of the webhook.
	PrivateSecret = "krake-webhook-signing-key" //nolint:gosec // a name, and nothing that is secret
	// PublicSecret is the Secret with the public keys, in the namespace of the agents. Agents read it
	// on their hub. It is no ConfigMap, because users have rights on ConfigMaps.
	PublicSecret = "krake-webhook-public-keys" //nolint:gosec // the same
	// PrivateKey is the key of the data of the [PrivateSecret]. Its value is PKCS #8 in PEM.
	PrivateKey = "private.pem"

	publicSuffix = ".pem"
	// format begins each digest, so that a signature of another format is never valid.
	format = "krake.dev/signature/v1"
)

// ErrNotAdmitted is the error of an Application without a valid signature.
var ErrNotAdmitted = errors.New("the webhook has not admitted this content")

// Signer signs with a private key.
type Signer struct {
	key ed25519.PrivateKey
	id  string
}

// NewSigner returns a signer.
func NewSigner(key ed25519.PrivateKey) Signer {
	return Signer{key, idOf(key.Public().(ed25519.PublicKey))}
}

// ParseSigner reads a private key that [Signer.Encode] wrote.
func ParseSigner(text []byte) (Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return Signer{}, errors.New("it is not in PEM format")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Signer{}, errors.New("it is not a private key in PKCS #8") // without the text
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Signer{}, fmt.Errorf("it is a %T, and no Ed25519 key", parsed)
	}
	return NewSigner(key), nil
}

// Encode returns the private key in PEM.
func (s Signer) Encode() ([]byte, error) {
	text, err := x509.MarshalPKCS8PrivateKey(s.key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), err
}

// Public returns the name and the value of the public key in the data of the [PublicSecret].
func (s Signer) Public() (name string, text []byte, err error) {
	encoded, err := x509.MarshalPKIXPublicKey(s.key.Public())
	return s.id + publicSuffix, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: encoded}), err
}

// Sign writes the signature of an Application into its annotation. The same intent has the same
// signature.
func (s Signer) Sign(cm *corev1.ConfigMap) {
	signed := ed25519.Sign(s.key, digest(cm))
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, application.SignatureAnnotation, s.id+"."+base64.RawURLEncoding.EncodeToString(signed))
}

// Keys are public keys by their ID.
type Keys map[string]ed25519.PublicKey

// ParseKeys reads the data of the [PublicSecret]. It returns the keys that it can read, and an error
// that names the others.
func ParseKeys(data map[string][]byte) (Keys, error) {
	keys := Keys{}
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(data)) {
		key, err := parsePublic(data[name])
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
			continue
		}
		keys[idOf(key)] = key
	}
	return keys, errors.Join(failures...)
}

func parsePublic(text []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not in PEM format")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T, and no Ed25519 key", parsed)
	}
	return key, nil
}

// Verify returns nil if one of the keys has signed the Application as it is. The error is
// ErrNotAdmitted.
func (k Keys) Verify(cm *corev1.ConfigMap) error {
	text, isSigned := cm.Annotations[application.SignatureAnnotation]
	if !isSigned {
		return fmt.Errorf("%w: it has no signature", ErrNotAdmitted)
	}
	id, encoded, _ := strings.Cut(text, ".")
	key, isKnown := k[id]
	if !isKnown {
		return fmt.Errorf("%w: its signature is by a key that Secret %s/%s does not have",
			ErrNotAdmitted, application.AgentsNamespace, PublicSecret)
	}
	signed, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !ed25519.Verify(key, digest(cm), signed) {
		return fmt.Errorf("%w: its signature is not of this content", ErrNotAdmitted)
	}
	return nil
}

// idOf returns the ID of a public key, by which it is found and not trusted.
func idOf(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// digest returns what is signed. The length of each text comes before it, so that no text can
// continue in the next one.
func digest(cm *corev1.ConfigMap) []byte {
	sum := sha256.New()
	for _, text := range []string{format, application.ClusterOf(cm), cm.Namespace, cm.Name} {
		add(sum, text)
	}
	intent := application.Intent(cm)
	for _, key := range slices.Sorted(maps.Keys(intent)) {
		add(sum, key)
		add(sum, intent[key])
	}
	return sum.Sum(nil)
}

func add(sum hash.Hash, text string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(text)))
	sum.Write(length[:])
	_, _ = io.WriteString(sum, text) // a hash returns no error
}
