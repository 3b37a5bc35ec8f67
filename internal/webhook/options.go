// Package webhook wires the mutating webhook: the handler of admission
// requests, its certificates, and health.
package webhook

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/internal/reach"
	"github.com/krake-observer/krake-observer/internal/webhook/limit"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// name is the webhook's user agent and field manager.
const name = "krake-webhook"

// Options of the webhook.
type Options struct {
	options.Server

	Reach reach.Options

	// RequireServiceAccount is strict mode: the user of an Application needs the right to
	// act as its service account, named or not.
	RequireServiceAccount bool

	// URLSources admits Applications whose resources are behind a URL, which agents
	// with --url-source-hosts fetch.
	URLSources bool

	// DryRunTimeout is how long admission waits for the dry runs of the new objects of an
	// Application. 0 turns them off.
	DryRunTimeout time.Duration

	// Certificates are those of the server, with the name by which it is called.
	Certificates pki.Options

	Host string
	Port int
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Server.AddFlags(flags, "0")
	o.Reach.AddFlags(flags)
	addCertificateFlags(&o.Certificates, flags)
	flags.BoolVar(&o.RequireServiceAccount, "require-service-account", false,
		"strict mode, to set on webhook and agents alike: agents write as a ServiceAccount of the Application's namespace only, "+
			application.DefaultServiceAccount+" if the annotation "+application.ServiceAccountAnnotation+" names none; the user must have the right to act as that account")
	flags.BoolVar(&o.URLSources, "url-sources", false,
		"admit Applications with the URL of a template or archive, which agents with --url-source-hosts fetch; requires --require-service-account")
	flags.DurationVar(&o.DryRunTimeout, "dry-run-timeout", 300*time.Millisecond,
		"how long an admission waits for dry runs of the new objects on this cluster, to warn of those that the API server refuses; 0: no dry runs")
	flags.StringVar(&o.Host, "host", "", "address to serve on (default: all)")
	flags.IntVar(&o.Port, "port", 9443, "port to serve on")
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	failures := []error{o.Logging.Validate(), o.Reach.Validate(), validateCertificates(&o.Certificates)}
	if o.Port < 1 || o.Port > 65535 {
		failures = append(failures, fmt.Errorf("--port: %d is no port", o.Port))
	}
	if o.DryRunTimeout < 0 || o.DryRunTimeout > limit.AnswerTime {
		failures = append(failures, fmt.Errorf("--dry-run-timeout: %s is not between 0 and %s, so that the webhook answers in time", o.DryRunTimeout, limit.AnswerTime))
	}
	if o.URLSources && !o.RequireServiceAccount {
		failures = append(failures, errors.New("--url-sources: only the API server checks the content of a URL, by the rights of the ServiceAccount: add --require-service-account"))
	}
	return errors.Join(failures...)
}

// addCertificateFlags adds the flags of the certificates with their defaults.
func addCertificateFlags(o *pki.Options, flags *pflag.FlagSet) {
	*o = pki.Defaults()
	o.Name = name
	flags.StringVar(&o.Namespace, "namespace", "krake-system", "namespace of the webhook's Service and Secret")
	flags.StringVar(&o.Service, "service", "krake-webhook", "name of the Service through which the API server calls the webhook")
	flags.StringVar(&o.Secret, "secret", "krake-webhook-certificate", "name of the Secret with the certificates; it must exist, and may be empty")
	flags.StringVar(&o.Configuration, "webhook-configuration", "krake-webhook", "name of the MutatingWebhookConfiguration")
	flags.DurationVar(&o.Validity, "certificate-validity", o.Validity, "how long a serving certificate is valid; it is replaced when a third of that is left")
	flags.DurationVar(&o.CAValidity, "ca-validity", o.CAValidity, "how long a CA is valid; it is replaced when a third of that is left")
	flags.DurationVar(&o.Overlap, "ca-overlap", o.Overlap, "how long a new CA is in the configuration before it is used; all API servers must have seen it by then")
}

// validateCertificates reports every flag of the certificates that cannot be used.
func validateCertificates(o *pki.Options) error {
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
