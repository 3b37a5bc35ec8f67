package webhook

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
)

func parse(t *testing.T, arguments ...string) *Options {
	t.Helper()
	var options Options
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	options.AddFlags(flags)
	check.Must(t, flags.Parse(arguments))
	return &options
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments []string
		want      []string // each complaint
	}{
		{"the defaults can be used", nil, nil},
		{"strict mode", []string{"--require-service-account"}, nil},
		{"the first port", []string{"--port=1"}, nil},
		{"the last port", []string{"--port=65535"}, nil},
		{"no port, which would be a random one", []string{"--port=0"}, []string{"--port: 0 is no port"}},
		{"a port that is too large", []string{"--port=65536"}, []string{"--port: 65536 is no port"}},
		{"what certificates cannot do with", []string{"--secret=", "--certificate-validity=0s"}, []string{
			"--secret: must not be empty", "--certificate-validity: 0s must be more than 0",
		}},
		{"a level that does not exist", []string{"--log-level=loud"}, []string{`--log-level: slog: level string "loud": unknown name`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			if err := parse(t, c.arguments...).Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			check.Equal(t, "complaints", c.want, got)
		})
	}
}
