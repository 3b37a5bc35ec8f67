package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// Hooks are the options of the endpoint that Pods call, and of shutdowns.
type Hooks struct {
	// Enabled: the agent makes the Secrets of hooks, and serves the endpoint.
	Enabled bool
	// Address is where to listen, and Endpoint the URL by which Pods reach that.
	Address, Endpoint string
	// Shutdown is what counts for an Application that does not say otherwise.
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

// addHooks has the agent serve hooks, if it is to: the loop makes their Secrets and
// asks for shutdowns, and the endpoint takes what Pods say to the loop.
func (a *agent) addHooks(reconciler *reconcile.Reconciler, store *store) error {
	options := a.options.Hooks
	reconciler.ShutdownDefaults = reconcile.ShutdownDefaults{
		GraceTime: options.GraceTime, Strategy: application.ShutdownStrategy(options.Strategy), Retries: options.Retries,
	}
	if !options.Enabled {
		return nil
	}
	endpoint, err := hooks.ParseEndpoint(options.Endpoint)
	if err != nil {
		return err
	}
	secrets, err := corev1client.NewForConfig(a.target.Config)
	if err != nil {
		return err
	}
	logger, registry := a.configs.Logger.WithName("hooks"), a.configs.Registry
	if registry == nil {
		registry = prometheus.NewRegistry() // nobody reads it
	}
	issuer := hooks.NewIssuer(hooks.NewSecretKeeper(secrets, a.options.Namespace), endpoint, time.Now, logger)
	server, err := hooks.NewServer(hooks.ServerOptions{
		Address: options.Address, Issuer: issuer, Applications: acting{store}, Actions: &hookActions{reconciler, store, a.manager.GetAPIReader(), a.notifications.notify},
		Logger: logger, Registerer: registry, Now: time.Now,
	})
	if err != nil {
		return err
	}
	reconciler.Secrets, reconciler.Shutdowns = issuer, hooks.NewCaller(a.configs.DialService)
	return errors.Join(a.manager.Add(issuer), a.manager.Add(server), a.manager.AddReadyzCheck("hooks", issuer.Ready))
}

// acting gives Applications while this replica acts: what another one has cached may
// be older than what a Pod speaks of.
type acting struct{ store *store }

// Get implements hooks.Applications.
func (a acting) Get(ctx context.Context, name types.NamespacedName) (*application.Application, error) {
	if err := a.store.may(); err != nil {
		return nil, err
	}
	return a.store.Get(ctx, name)
}

// hookActions carries out what Pods have proven, and has the loop go on from there.
type hookActions struct {
	reconciler *reconcile.Reconciler
	store      *store
	live       client.Reader
	notify     func(types.NamespacedName)
}

// Complete implements hooks.Actions.
func (h *hookActions) Complete(ctx context.Context, app *application.Application) (application.State, error) {
	return h.act(ctx, app, h.reconciler.Complete)
}

// Shutdown implements hooks.Actions.
func (h *hookActions) Shutdown(ctx context.Context, app *application.Application) (application.State, error) {
	return h.act(ctx, app, h.reconciler.ConfirmShutdown)
}

// Retry implements hooks.Actions.
func (h *hookActions) Retry(ctx context.Context, app *application.Application) (application.State, error) {
	state, err := h.act(ctx, app, h.reconciler.RetryShutdown)
	if errors.Is(err, reconcile.ErrNotDegraded) {
		err = hooks.ErrNotDegraded
	}
	return state, err
}

// writesAtOnce is how often one action is begun anew because the loop, or a user,
// has written the Application meanwhile.
const writesAtOnce = 5

func (h *hookActions) act(ctx context.Context, app *application.Application, do func(context.Context, *application.Application) (application.State, error)) (application.State, error) {
	uid := app.UID
	for range writesAtOnce {
		state, err := do(ctx, app)
		if !apierrors.IsConflict(err) {
			h.notify(app.NamespacedName)
			return state, err
		}
		if app, err = h.newest(ctx, app.NamespacedName); err != nil {
			return "", err
		}
		if app == nil || app.UID != uid {
			return application.StateDeleting, nil // it is gone
		}
	}
	return "", fmt.Errorf("write Application %s: somebody else writes it as fast as this agent", app.NamespacedName)
}

// newest reads an Application past the cache, which lags behind whoever was faster;
// nil: there is none any more.
func (h *hookActions) newest(ctx context.Context, name types.NamespacedName) (*application.Application, error) {
	var found corev1.ConfigMapList
	err := h.live.List(ctx, &found, client.InNamespace(name.Namespace),
		client.MatchingFields{"metadata.name": name.Name}, client.HasLabels{application.HolderLabel(h.store.cluster)})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read Application %s: %w", name, err)
	case len(found.Items) == 0:
		return nil, nil
	}
	h.store.saw(&found.Items[0])
	return h.store.Get(ctx, name)
}
