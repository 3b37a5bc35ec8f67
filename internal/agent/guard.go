package agent

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/internal/agent/guard"
	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// guardPatience is how long the guard waits for an object that it has to read. The API server waits for the
// guard for 2 s.
const guardPatience = time.Second

// addGuard makes every replica serve the guard, if it is enabled.
func (b *base) addGuard(reconciler *reconcile.Reconciler, store *hub.Store, kinds *discovery.Kinds) error {
	if !b.options.Guard.Enabled {
		return nil
	}
	objects, err := dynamic.NewForConfig(b.target.Config)
	if err != nil {
		return err
	}
	serve, err := guard.New(b.manager, b.target.Config, b.configs.Registry, b.options.Namespace, b.options.Guard, guard.Source{
		Get: store.Get, Home: reconciler.Namespaces.Of, Report: reconciler.Report, MaxHold: reconciler.MaxHold, Now: time.Now,
		Logger: b.configs.Logger.WithName("guard"),
		Types: func(id manifest.ID) *apitypes.Types {
			found, _ := kinds.Describe(id)
			return found
		},
		Writer: func(app *application.Application) string {
			account := reconciler.AccountOf(app)
			if account == (reconcile.Account{}) {
				return ""
			}
			return "system:serviceaccount:" + account.Namespace + ":" + account.Name
		},
		Live: func(ctx context.Context, at manifest.Ref) (map[string]any, error) {
			ctx, cancel := context.WithTimeout(ctx, guardPatience)
			defer cancel()
			live, err := objects.Resource(at.Resource).Namespace(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return live.Object, nil
		},
	})
	if err != nil {
		return err
	}
	return b.manager.Add(&everywhere{serve})
}
