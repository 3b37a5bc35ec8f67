package webhook

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The phases of an admission that take time.
const (
	wholePhase   = "whole"
	computePhase = "compute"
	reviewPhase  = "review"
)

// The verdicts of the webhook.
const (
	admitted = "admitted"
	denied   = "denied"
	wrong    = "invalid"
	failed   = "error"
)

var (
	admissions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "krake_webhook_admissions_total",
		Help: "Admission requests of Applications, by operation and verdict: admitted, invalid (422), denied (403) or error.",
	}, []string{"operation", "verdict"})

	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "krake_webhook_admission_duration_seconds",
		Help:    "Time of admissions: the whole, and in it the computation (decoding included) and the review of the user's rights.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
	}, []string{"phase"})

	reviews = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "krake_webhook_access_reviews_total",
		Help: "Rights of users that were asked for, by result: allowed, denied or error as the API server says, or cached.",
	}, []string{"result"})
)

// registerMetrics has the manager serve the metrics.
func registerMetrics() error {
	for _, collector := range []prometheus.Collector{admissions, durations, reviews} {
		if err := metrics.Registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// operationOf is a label: whatever else a request may say is one.
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
		return admitted
	case response.Result == nil:
		return failed
	}
	switch response.Result.Code {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return wrong
	case http.StatusForbidden:
		return denied
	}
	return failed
}

// levelOf is the level to log a verdict at: what was admitted is not worth a line.
func levelOf(verdict string) int {
	if verdict == admitted {
		return 1
	}
	return 0
}

// fieldsOf gives the fields that a refusal names.
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
