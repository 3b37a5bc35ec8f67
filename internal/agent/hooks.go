package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Hooks are the options of the endpoint that Pods call, and of shutdowns.
type Hooks struct {
	// Enabled: the agent makes the Secrets of hooks, and serves the endpoint.
	Enabled bool
	// Address is where to listen, and Endpoint the URL by which Pods reach that.
	Address, Endpoint string
	// GraceTime, Strategy and Retries hold for an Application without annotations of its
	// own.
	GraceTime time.Duration
	Strategy  string
	Retries   int
}

func (h *Hooks) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&h.Enabled, "hooks", false, "serve the hooks complete and shutdown of Applications; wants rights on Secrets where these are")
	flags.StringVar(&h.Address, "hooks-bind-address", ":8444", "where to serve the hooks")
	flags.StringVar(&h.Endpoint, "hooks-endpoint", "https://krake-hooks.krake-agents.svc", "URL by which Pods reach the hooks: https://host[:port]")
	flags.DurationVar(&h.GraceTime, "shutdown-grace-time", 30*time.Second, "how long an Application has to confirm its shutdown, unless annotation "+application.ShutdownGraceTimeAnnotation+" says otherwise")
	flags.StringVar(&h.Strategy, "shutdown-failure-strategy", string(application.GiveUpShutdown),
		"what becomes of an Application that does not confirm, unless annotation "+application.ShutdownStrategyAnnotation+" says otherwise: give_up (keep it) or delete")
	flags.IntVar(&h.Retries, "shutdown-retry-count", 0, "how often an Application is asked again that does not confirm, unless annotation "+application.ShutdownRetryCountAnnotation+" says otherwise")
}

func (h *Hooks) validate() error {
	var failures []error
	if h.Enabled {
		if _, err := hooks.ParseEndpoint(h.Endpoint); err != nil {
			failures = append(failures, fmt.Errorf("--hooks-endpoint: %w", err))
		}
	}
	if h.GraceTime < time.Second {
		failures = append(failures, errors.New("--shutdown-grace-time: must be at least 1s"))
	}
	if strategy := application.ShutdownStrategy(h.Strategy); strategy != application.GiveUpShutdown && strategy != application.DeleteAnyway {
		failures = append(failures, fmt.Errorf("--shutdown-failure-strategy: %q is neither give_up nor delete", h.Strategy))
	}
	if h.Retries < 0 {
		failures = append(failures, errors.New("--shutdown-retry-count: must not be negative"))
	}
	return errors.Join(failures...)
}
