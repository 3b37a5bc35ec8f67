// Package webhook wires the mutating webhook: the handler of admission
// requests, its certificates, and health.
package webhook

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/options"
)

// Options of the webhook.
type Options struct {
	Connection options.Connection
	Logging    options.Logging
	Reach      options.Reach

	// Namespace, Service and Secret are where the webhook runs, how the API
	// server reaches it, and where its certificates are kept.
	Namespace string
	Service   string
	Secret    string
	// Configuration is the MutatingWebhookConfiguration that gets the CA.
	Configuration string
	// CertDir is a folder to write to.
	CertDir string
	// Host and Port are where to serve.
	Host string
	Port int
	// HealthAddress and MetricsAddress are where to listen; "0" is nowhere.
	HealthAddress  string
	MetricsAddress string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Connection.AddFlags(flags)
	o.Logging.AddFlags(flags)
	o.Reach.AddFlags(flags)
	flags.StringVar(&o.Namespace, "namespace", "krake-system", "namespace of the webhook's Service and Secret")
	flags.StringVar(&o.Service, "service", "krake-webhook", "name of the Service by which the API server calls the webhook")
	flags.StringVar(&o.Secret, "secret", "krake-webhook-certificate", "name of the Secret that keeps the certificates; it must exist, and may be empty")
	flags.StringVar(&o.Configuration, "configuration", "krake-webhook", "name of the MutatingWebhookConfiguration")
	flags.StringVar(&o.CertDir, "cert-dir", "/certificates", "folder to keep the serving certificate in (never a key)")
	flags.StringVar(&o.Host, "host", "", "address to serve on (default: all)")
	flags.IntVar(&o.Port, "port", 9443, "port to serve on")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", `where to answer /healthz and /readyz; "0": nowhere`)
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", `where to serve /metrics, over TLS, to whoever may get it; "0": nowhere`)
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	failures := []error{o.Logging.Validate(), o.Reach.Validate()}
	for _, required := range []struct{ flag, value string }{
		{"namespace", o.Namespace}, {"service", o.Service}, {"secret", o.Secret},
		{"configuration", o.Configuration}, {"cert-dir", o.CertDir},
	} {
		if required.value == "" {
			failures = append(failures, fmt.Errorf("--%s: must not be empty", required.flag))
		}
	}
	if o.Port < 1 || o.Port > 65535 {
		failures = append(failures, fmt.Errorf("--port: %d is no port", o.Port))
	}
	return errors.Join(failures...)
}
