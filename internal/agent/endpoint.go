package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// newIssuer returns what makes the Secrets of hooks, nil unless they are enabled.
func (b *base) newIssuer() (*hooks.Issuer, error) {
	if !b.options.Hooks.Enabled {
		return nil, nil
	}
	endpoint, err := hooks.ParseEndpoint(b.options.Hooks.Endpoint)
	if err != nil {
		return nil, err
	}
	secrets, err := corev1client.NewForConfig(b.target.Config)
	if err != nil {
		return nil, err
	}
	return hooks.NewIssuer(secrets, b.options.Namespace, endpoint, time.Now, b.configs.Logger.WithName("hooks")), nil
}

// addHooks adds the endpoint that passes the calls of Pods to the loop, if there is an issuer.
func (b *base) addHooks(issuer *hooks.Issuer, reconciler *reconcile.Reconciler, store *hub.Store) error {
	if issuer == nil {
		return nil
	}
	server, err := hooks.NewServer(hooks.ServerOptions{
		Address: b.options.Hooks.Address, Issuer: issuer, Applications: whileActing{store, b.tenure},
		Actions: &hookActions{reconciler, store, b.manager.GetAPIReader(), b.notifications.notify},
		Logger:  b.configs.Logger.WithName("hooks"), Registerer: b.configs.Registry, Now: time.Now,
	})
	if err != nil {
		return err
	}
	return errors.Join(b.manager.Add(issuer), b.manager.Add(server), b.manager.AddReadyzCheck("hooks", issuer.Ready))
}

// whileActing reads Applications while this replica acts for them: the cache of another replica may be
// older than the call of a Pod.
type whileActing struct {
	store *hub.Store
	right *right.Leadership
}

// Get implements hooks.Applications.
func (a whileActing) Get(ctx context.Context, name types.NamespacedName) (*application.Application, error) {
	if !a.right.Owns(name.Namespace) {
		return nil, hooks.ErrAnotherActs
	}
	return a.store.Get(ctx, name)
}

// hookActions carries out the calls of Pods, and then requests a pass of the loop.
type hookActions struct {
	reconciler *reconcile.Reconciler
	store      *hub.Store
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

// writesAtOnce is how often one action starts again because the loop, or a user, wrote the
// Application meanwhile.
const writesAtOnce = 5

func (h *hookActions) act(ctx context.Context, app *application.Application, do func(context.Context, *application.Application) (application.State, error)) (application.State, error) {
	uid := app.UID
	for range writesAtOnce {
		state, err := do(ctx, app)
		if !apierrors.IsConflict(err) {
			h.notify(app.NamespacedName)
			return state, err
		}
		if app, err = h.store.GetLive(ctx, h.live, app.NamespacedName); err != nil {
			return "", err
		}
		if app == nil || app.UID != uid {
			return application.StateDeleting, nil // it is gone
		}
	}
	return "", fmt.Errorf("write Application %s: another client writes it as fast as this agent", app.NamespacedName)
}
