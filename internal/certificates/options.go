package certificates

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

const day = 24 * time.Hour

// Options name the server whose certificates are kept, where, and how long each is valid.
type Options struct {
	// Name is the field manager of the writes. The CAs are named after it. If it changes,
	// the CA is replaced.
	Name string
	// Namespace and Service are how the API server calls the webhook: the name
	// in the server's certificate. The Secret is in the same namespace.
	Namespace string
	Service   string
	// Secret has the certificates. It must exist, and may be empty.
	Secret string
	// Configuration is the configuration that gets the CAs, of the given kind.
	Configuration string
	Kind          Kind
	// Validity and CAValidity are how long a pair and a CA are valid. Each is replaced
	// when a third of that is left.
	Validity   time.Duration
	CAValidity time.Duration
	// Overlap is how long a CA has been in the configuration before anything
	// that it signed is served. All API servers must have seen it by then.
	Overlap time.Duration
}

// Defaults returns how long certificates are valid, without the names.
func Defaults() Options {
	return Options{Validity: 90 * day, CAValidity: 5 * 365 * day, Overlap: 30 * time.Second}
}

// AddFlags adds the flags of the mutating webhook with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	*o = Defaults()
	o.Name = "krake-webhook"
	flags.StringVar(&o.Namespace, "namespace", "krake-system", "namespace of the webhook's Service and Secret")
	flags.StringVar(&o.Service, "service", "krake-webhook", "name of the Service through which the API server calls the webhook")
	flags.StringVar(&o.Secret, "secret", "krake-webhook-certificate", "name of the Secret with the certificates; it must exist, and may be empty")
	flags.StringVar(&o.Configuration, "webhook-configuration", "krake-webhook", "name of the MutatingWebhookConfiguration")
	flags.DurationVar(&o.Validity, "certificate-validity", o.Validity, "how long a serving certificate is valid; it is replaced when a third of that is left")
	flags.DurationVar(&o.CAValidity, "ca-validity", o.CAValidity, "how long a CA is valid; it is replaced when a third of that is left")
	flags.DurationVar(&o.Overlap, "ca-overlap", o.Overlap, "how long a new CA is in the configuration before it is used; all API servers must have seen it by then")
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	var failures []error
	for _, required := range []struct{ flag, value string }{
		{"namespace", o.Namespace}, {"service", o.Service}, {"secret", o.Secret}, {"webhook-configuration", o.Configuration},
	} {
		if required.value == "" {
			failures = append(failures, fmt.Errorf("--%s: must not be empty", required.flag))
		}
	}
	if o.Validity <= 0 {
		failures = append(failures, fmt.Errorf("--certificate-validity: %s must be more than 0", o.Validity))
	}
	if o.CAValidity < o.Validity {
		failures = append(failures, fmt.Errorf("--ca-validity: %s is less than the certificates' %s", o.CAValidity, o.Validity))
	}
	if o.Overlap < 0 || o.Overlap >= o.CAValidity/3 {
		failures = append(failures, fmt.Errorf("--ca-overlap: %s is not within the last third of a CA's life, %s", o.Overlap, o.CAValidity/3))
	}
	return errors.Join(failures...)
}

// dnsName is the name by which the API server calls the webhook.
func (o Options) dnsName() string { return fmt.Sprintf("%s.%s.svc", o.Service, o.Namespace) }

// authorityName is the name of the CAs.
func (o Options) authorityName() string { return o.Name + "-ca" }
