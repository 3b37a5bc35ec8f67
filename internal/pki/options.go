package pki

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options name the server whose certificates are kept, where, and how long each is valid.
type Options struct {
	// Name is the field manager of the writes. The CAs are named after it. If it changes,
	// the CA is replaced.
	Name string
	// Namespace and Service are how the API server calls the webhook: the name
	// in the server's certificate. The Secret is in the same namespace.
	Namespace, Service string
	// Secret has the certificates. It must exist, and may be empty.
	Secret string
	// Configuration is the webhook configuration that gets the CAs. It is a mutating or a
	// validating one.
	Configuration string
	IsValidating  bool
	// Validity and CAValidity are how long a pair and a CA are valid. Each is replaced
	// when a third of that is left.
	Validity, CAValidity time.Duration
	// Overlap is how long a CA has been in the configuration before anything
	// that it signed is served. All API servers must have seen it by then.
	Overlap time.Duration
}

// Defaults returns how long certificates are valid, without the names.
func Defaults() Options {
	const day = 24 * time.Hour
	return Options{Validity: 90 * day, CAValidity: 5 * 365 * day, Overlap: 30 * time.Second}
}

// dnsName is the name by which the API server calls the webhook.
func (o Options) dnsName() string { return o.Service + "." + o.Namespace + ".svc" }

// authorityName is the name of the CAs.
func (o Options) authorityName() string { return o.Name + "-ca" }

// newConfiguration returns an empty webhook configuration of the kind that has the CAs.
func (o Options) newConfiguration() client.Object {
	meta := metav1.ObjectMeta{Name: o.Configuration}
	if o.IsValidating {
		return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	}
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta}
}
