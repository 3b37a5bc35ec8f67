package webhook

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	admissions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "krake_webhook_admissions_total",
		Help: "Admission requests of Applications, by operation and verdict: admitted, invalid (422), denied (403) or error.",
	}, []string{"operation", "verdict"})

	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "krake_webhook_admission_duration_seconds",
		Help:    "Time of admissions: the whole, and in it the computation (decoding included), the review of rights, and the dry runs of new objects.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
	}, []string{"phase"})

	reviews = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "krake_webhook_access_reviews_total",
		Help: "Rights of users that were asked for, by result: allowed, denied or error as the API server says, or cached.",
	}, []string{"result"})
)

// registerMetrics has the manager serve the metrics.
func registerMetrics() error {
	return errors.Join(metrics.Registry.Register(admissions), metrics.Registry.Register(durations), metrics.Registry.Register(reviews))
}

// operationOf returns the label of an operation, one for all that are not expected.
func operationOf(request admission.Request) string {
	switch request.Operation {
	case admissionv1.Create, admissionv1.Update:
		return strings.ToLower(string(request.Operation))
	}
	return "other"
}

func verdictOf(response admission.Response) string {
	switch {
	case response.Allowed:
		return "admitted"
	case response.Result == nil:
		return "error"
	}
	switch response.Result.Code {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return "invalid"
	case http.StatusForbidden:
		return "denied"
	}
	return "error"
}

// fieldsOf returns the first fields that a refusal names.
func fieldsOf(response admission.Response) []string {
	const most = 10
	if response.Result == nil || response.Result.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range response.Result.Details.Causes[:min(most, len(response.Result.Details.Causes))] {
		fields = append(fields, cause.Field)
	}
	return fields
}
