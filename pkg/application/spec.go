package application

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
)

// Spec is the user's text, unchanged, and the hooks that add to it.
type Spec struct {
	// Manifest is the text, or what gzip has made of it, see [Spec.ManifestText].
	Manifest       string
	ObserverSchema string
	// Tosca is a template or its URL. CSAR is an archive, which is no text, or its URL.
	Tosca, CSAR string
	Hooks       Hooks
	// Fetched is the translated content of the URL as canonical JSON, empty before it was fetched.
	// The user does not write it, so that it is not in the digest.
	Fetched string
}

// SpecOf reads the user's text.
func SpecOf(cm *corev1.ConfigMap) Spec {
	return Spec{
		Manifest: manifestOf(cm), ObserverSchema: cm.Data[ObserverSchemaKey],
		Tosca: cm.Data[ToscaKey], CSAR: cm.Data[CSARKey] + string(cm.BinaryData[CSARKey]),
		Hooks: HooksOf(cm),
	}
}

// manifestOf returns the manifest as it is stored. Admission refuses binary data that gzip has not made.
func manifestOf(cm *corev1.ConfigMap) string {
	if compressed := string(cm.BinaryData[ManifestKey]); IsCompressed(compressed) {
		return compressed
	}
	return cm.Data[ManifestKey]
}

// Digest returns a digest of the user's text, because a ConfigMap has no generation.
func (s Spec) Digest() string {
	texts := []string{s.Manifest, s.ObserverSchema}
	if s.Tosca != "" || s.CSAR != "" {
		texts = append(texts, s.Tosca, s.CSAR)
	}
	for _, hook := range s.Hooks.Enabled() {
		texts = append(texts, string(hook))
	}
	if s.Hooks.InitContainers {
		texts = append(texts, "init containers")
	}
	return "sha256:" + hex.EncodeToString(digestTexts(texts...))
}

// digestTexts digests texts so that their borders count.
func digestTexts(texts ...string) []byte {
	hash := sha256.New()
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		hash.Write(sum[:])
	}
	return hash.Sum(nil)
}

// Source returns the key and the text of the resources: the manifest, as it is stored, if there is one, else the
// template, else the archive.
func (s Spec) Source() (key, text string) {
	switch {
	case s.Manifest == "" && s.Tosca != "":
		return ToscaKey, s.Tosca
	case s.Manifest == "" && s.CSAR != "":
		return CSARKey, s.CSAR
	}
	return ManifestKey, s.Manifest
}

// fetchedAs digests a translation together with its source, "" for no translation.
func (s Spec) fetchedAs(translation string) string {
	if translation == "" {
		return ""
	}
	key, text := s.Source()
	return DigestOf([]byte(key + " " + DigestOf([]byte(text)) + " " + DigestOf([]byte(translation))))
}
