package guard

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options of the guard.
type Options struct {
	Enabled bool
	// Name is that of its Service and of the ValidatingWebhookConfiguration. Its Secret has the name with
	// the suffix -certificate.
	Name string
	// Address is where it listens: host:port.
	Address string
	// BreakGlassUsers and BreakGlassGroups pass where it would refuse a request.
	BreakGlassUsers, BreakGlassGroups []string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "guard", false, "serve a webhook that warns of changes that the agent will revert, or refuses them; wants the component guard of the manifests")
	flags.StringVar(&o.Name, "guard-name", "krake-guard", "name of the guard's Service and ValidatingWebhookConfiguration; its Secret is called like that, with -certificate at the end")
	flags.StringVar(&o.Address, "guard-bind-address", ":9443", "where to serve the guard")
	flags.StringSliceVar(&o.BreakGlassUsers, "guard-break-glass-users", nil, "users whose requests the guard never refuses: each such request has an Event")
	flags.StringSliceVar(&o.BreakGlassGroups, "guard-break-glass-groups", nil, "groups whose requests the guard never refuses: each such request has an Event")
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	if !o.Enabled {
		if len(o.BreakGlassUsers)+len(o.BreakGlassGroups) > 0 {
			return errors.New("--guard-break-glass-users and --guard-break-glass-groups: have a meaning with --guard only")
		}
		return nil
	}
	var failures []error
	if problems := validation.IsDNS1035Label(o.Name); len(problems) > 0 {
		failures = append(failures, fmt.Errorf("--guard-name: %q: %s", o.Name, problems[0]))
	}
	if _, _, err := o.listen(); err != nil {
		failures = append(failures, fmt.Errorf("--guard-bind-address: %w", err))
	}
	return errors.Join(failures...)
}

func (o *Options) secret() string { return o.Name + "-certificate" }

// listen returns host and port.
func (o *Options) listen() (string, int, error) {
	host, text, err := net.SplitHostPort(o.Address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", 0, fmt.Errorf("%q is no port", text)
	}
	return host, int(port), nil
}
