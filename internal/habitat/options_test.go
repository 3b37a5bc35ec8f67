package habitat

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
)

// All mistakes are told at once.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments []string
		want      []string
	}{
		{"the defaults can be used", nil, nil},
		{"namespaced mode", []string{"--assume-crd-registered", "--namespaces=team-a,team-b"}, nil},
		{
			"everything is wrong",
			[]string{"--log-format=xml", "--leader-elect-retry-period=0", "--cluster=Edge_1", "--namespaces=a,B", "--namespace=", "--habitat-files-image="},
			[]string{"--log-format", "--leader-elect-retry-period", "--cluster", "--namespaces", "--namespace", "--habitat-files-image"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options Options
			flags := pflag.NewFlagSet("habitat", pflag.ContinueOnError)
			options.AddFlags(flags)
			check.Must(t, flags.Parse(c.arguments))
			var got []string // the flag of each complaint
			for complaint := range strings.Lines(check.Message(options.Validate())) {
				flag, _, _ := strings.Cut(complaint, ":")
				got = append(got, flag)
			}
			check.Equal(t, "complaints", c.want, got)
		})
	}
}
