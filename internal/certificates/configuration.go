package certificates

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is the kind of the configuration that gets the CAs.
type Kind int

const (
	// Mutating is a MutatingWebhookConfiguration.
	Mutating Kind = iota
	// Validating is a ValidatingWebhookConfiguration.
	Validating
)

// object returns an empty configuration of this kind.
func (k Kind) object(name string) client.Object {
	meta := metav1.ObjectMeta{Name: name}
	if k == Validating {
		return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	}
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta}
}

// configuration has the fields of a configuration that matter here. Both kinds have them.
type configuration struct {
	name, version string
	webhooks      []webhook
}

// webhook has the bundle by which the API servers verify the server of one webhook.
type webhook struct {
	name   string
	bundle []byte
}

// configurationOf reads an object of either kind.
func configurationOf(object client.Object) *configuration {
	read := &configuration{name: object.GetName(), version: object.GetResourceVersion()}
	switch object := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for _, w := range object.Webhooks {
			read.webhooks = append(read.webhooks, webhook{w.Name, w.ClientConfig.CABundle})
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for _, w := range object.Webhooks {
			read.webhooks = append(read.webhooks, webhook{w.Name, w.ClientConfig.CABundle})
		}
	}
	return read
}
