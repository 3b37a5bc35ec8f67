package signature

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

func signerOf(seed byte) Signer {
	return NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

func newApplication() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "app", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{application.ManifestKey: "[]"},
	}
}

func keysOf(t *testing.T, signers ...Signer) Keys {
	t.Helper()
	data := map[string][]byte{}
	for _, signer := range signers {
		name, text, err := signer.Public()
		check.Must(t, err)
		data[name] = text
	}
	keys, err := ParseKeys(data)
	check.Must(t, err)
	return keys
}

// Nothing that an agent carries out can change without its signature. What only restrains the agent,
// and what others write, is not signed.
func TestWhatIsSigned(t *testing.T) {
	signer := signerOf(1)
	keys := keysOf(t, signer)
	cases := []struct {
		name   string
		change func(cm *corev1.ConfigMap)
		valid  bool
	}{
		{"nothing", func(*corev1.ConfigMap) {}, true},
		{"the status", func(cm *corev1.ConfigMap) { cm.Data[application.StatusKey] = "{}" }, true},
		{"the mode", func(cm *corev1.ConfigMap) { cm.Annotations[application.ModeAnnotation] = "observe" }, true},
		{"an annotation of another program", func(cm *corev1.ConfigMap) { cm.Annotations["example.org/x"] = "y" }, true},
		{"the manifest", func(cm *corev1.ConfigMap) { cm.Data[application.ManifestKey] += "\n" }, false},
		{"a schema", func(cm *corev1.ConfigMap) { cm.Data[application.ObserverSchemaKey] = "[]" }, false},
		{"an archive", func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{application.CSARKey: {0xff}} }, false},
		{"a key of the spec that is unknown", func(cm *corev1.ConfigMap) { cm.Data["spec.x"] = "" }, false},
		{"the account", func(cm *corev1.ConfigMap) { cm.Annotations[application.ServiceAccountAnnotation] = "admin" }, false},
		{"adoption", func(cm *corev1.ConfigMap) { cm.Annotations[application.AdoptAnnotation] = "true" }, false},
		{"the cluster", func(cm *corev1.ConfigMap) { cm.Annotations[application.ClusterAnnotation] = "other" }, false},
		{"the namespace", func(cm *corev1.ConfigMap) { cm.Namespace = "other" }, false},
		{"the name", func(cm *corev1.ConfigMap) { cm.Name = "other" }, false},
		{"a border between texts", func(cm *corev1.ConfigMap) { cm.Namespace, cm.Name = "demoa", "pp" }, false},
		{"no signature", func(cm *corev1.ConfigMap) { delete(cm.Annotations, application.SignatureAnnotation) }, false},
		{"a part of the signature", func(cm *corev1.ConfigMap) {
			cm.Annotations[application.SignatureAnnotation] = cm.Annotations[application.SignatureAnnotation][:40]
		}, false},
		{"the key of another", func(cm *corev1.ConfigMap) { signerOf(2).Sign(cm) }, false},
		{"another key by the ID of ours", func(cm *corev1.ConfigMap) {
			signerOf(2).Sign(cm)
			_, signed, _ := strings.Cut(cm.Annotations[application.SignatureAnnotation], ".")
			cm.Annotations[application.SignatureAnnotation] = signer.id + "." + signed
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cm := newApplication()
			signer.Sign(cm)
			c.change(cm)
			if err := keys.Verify(cm); (err == nil) != c.valid || err != nil && !errors.Is(err, ErrNotAdmitted) {
				t.Errorf("%v, want valid: %v", err, c.valid)
			}
		})
	}
}

// A key is the same after it was stored, the same intent has the same signature, and former keys stay
// valid while their public part is there.
func TestKeys(t *testing.T) {
	former, current := signerOf(1), signerOf(2)
	text, err := former.Encode()
	check.Must(t, err)
	stored, err := ParseSigner(text)
	check.Must(t, err)
	cm, again := newApplication(), newApplication()
	former.Sign(cm)
	stored.Sign(again)
	check.Equal(t, "the signature", cm.Annotations, again.Annotations)
	check.Must(t, keysOf(t, former, current).Verify(cm))
	err = keysOf(t, current).Verify(cm)
	check.Equal(t, "a signature is valid after its key was removed", false, !errors.Is(err, ErrNotAdmitted))
}

func TestUnreadableKeys(t *testing.T) {
	name, text, err := signerOf(1).Public()
	check.Must(t, err)
	keys, err := ParseKeys(map[string][]byte{name: text, "a": []byte("x"), "b": []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")})
	if len(keys) != 1 || err == nil || !strings.Contains(err.Error(), "a: ") || !strings.Contains(err.Error(), "b: ") {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	for _, text := range []string{"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err := ParseSigner([]byte(text))
		check.Equal(t, text+" is a key", false, err == nil)
	}
}
