package certificates

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// expiryGauge makes the gauge of the expiry of certificates, and registers it if there is
// a registry. All Keepers of a registry share it.
func expiryGauge(registry prometheus.Registerer) (*prometheus.GaugeVec, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "krake_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the serving certificate and the CA that signed it expire (seconds since 1970).",
	}, []string{"certificate"})
	if registry == nil {
		return gauge, nil
	}
	err := registry.Register(gauge)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if registered, ok := already.ExistingCollector.(*prometheus.GaugeVec); ok {
			return registered, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("register the metric of the certificates: %w", err)
	}
	return gauge, nil
}
