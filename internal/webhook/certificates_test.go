package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

func TestValidateCertificates(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	defaults := pki.Options{ //nolint:gosec // the name of a Secret is none
		Name:      "krake-webhook",
		Namespace: "krake-system", Service: "krake-webhook", Secret: "krake-webhook-certificate", Configuration: "krake-webhook",
		Validity: 90 * day, CAValidity: 5 * year, Overlap: 30 * time.Second,
	}
	for _, c := range []struct {
		name      string
		arguments []string
		want      []string // each complaint
	}{
		{"the defaults can be used", nil, nil},
		{"every flag that is empty is named, in this order", []string{"--namespace=", "--service=", "--secret=", "--webhook-configuration="}, []string{
			"--namespace: must not be empty", "--service: must not be empty", "--secret: must not be empty", "--webhook-configuration: must not be empty",
		}},
		{"a life of no time", []string{"--certificate-validity=0s"}, []string{"--certificate-validity: 0s must be more than 0"}},
		{"a CA that dies before what it signs", []string{"--ca-validity=1h"}, []string{"--ca-validity: 1h0m0s is less than the certificates' 2160h0m0s"}},
		{"both live equally long", []string{"--ca-validity=2160h"}, nil},
		{"no overlap, where all API servers see a change at once", []string{"--ca-overlap=0s"}, nil},
		{"an overlap into the past", []string{"--ca-overlap=-1s"}, []string{"--ca-overlap: -1s is not within the last third of a CA's life, 14600h0m0s"}},
		{"an overlap that the CA does not live to see", []string{"--ca-overlap=14600h"},
			[]string{"--ca-overlap: 14600h0m0s is not within the last third of a CA's life, 14600h0m0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var given pki.Options
			flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
			addCertificateFlags(&given, flags)
			check.Equal(t, "the defaults", defaults, given)
			kit.Must(t, flags.Parse(c.arguments))
			var got []string
			if err := validateCertificates(&given); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			check.Equal(t, "complaints", c.want, got)
		})
	}
}
