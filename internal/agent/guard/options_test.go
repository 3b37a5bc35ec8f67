package guard

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments []string
		want      []string // each complaint
	}{
		{"the defaults serve no guard", nil, nil},
		{"the defaults with a guard", []string{"--guard"}, nil},
		{"break glass", []string{"--guard", "--guard-break-glass-users=carol,dora", "--guard-break-glass-groups=oncall"}, nil},
		{"users of a guard that is not served", []string{"--guard-break-glass-users=carol"}, []string{
			"--guard-break-glass-users and --guard-break-glass-groups: have a meaning with --guard only",
		}},
		{"a guard that is not served has any address", []string{"--guard-bind-address=x", "--guard-name=X"}, nil},
		{"several mistakes are told at once", []string{"--guard", "--guard-name=Guard", "--guard-bind-address=9443"}, []string{
			`--guard-name: "Guard": a DNS-1035 label must consist of lower case alphanumeric characters or '-', ` +
				`start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
			"--guard-bind-address: address 9443: missing port in address",
		}},
		{"a port by name", []string{"--guard", "--guard-bind-address=:https"}, []string{`--guard-bind-address: "https" is no port`}},
		{"a port that is too high", []string{"--guard", "--guard-bind-address=:65536"}, []string{`--guard-bind-address: "65536" is no port`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options Options
			flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
			options.AddFlags(flags)
			check.Must(t, flags.Parse(c.arguments))
			var got []string
			if err := options.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			check.Equal(t, "complaints", c.want, got)
		})
	}
}
