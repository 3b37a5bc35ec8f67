package reconcile

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Applications stores the Applications.
type Applications interface {
	// Get returns the Application, or nil if there is none. It never returns an older version than
	// the last one that Update wrote.
	Get(ctx context.Context, name types.NamespacedName) (*application.Application, error)
	// Update stores the agent's part of the Application if it differs from the stored one. It
	// returns a conflict if another client wrote in the meantime.
	Update(ctx context.Context, app *application.Application) error
	// Delete deletes the Application, as a user would.
	Delete(ctx context.Context, app *application.Application) error
}

// Cluster has the objects of the Applications.
type Cluster interface {
	Create(ctx context.Context, ref manifest.Ref, object map[string]any) (live map[string]any, err error)
	Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (after map[string]any, err error)
	// TryPatch sends a patch as a dry run. An empty one tries the object itself.
	TryPatch(ctx context.Context, ref manifest.Ref, patch schema.Patch) error
	Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (remaining map[string]any, err error)
}

// Clusters returns the cluster for an account.
type Clusters interface {
	// As returns the cluster, written as the account. The zero value is the agent itself. The error
	// is ErrNoAccount if the account does not exist.
	As(ctx context.Context, account Account) (Cluster, error)
	// MayRead returns an error if the account must not see an object. The error is ErrUnreadable, or
	// ErrNoAccount.
	MayRead(ctx context.Context, account Account, ref manifest.Ref) error
}

// Account is a service account on the target.
type Account struct{ Namespace, Name string }

var (
	// ErrNoAccount is the error of an account that does not exist.
	ErrNoAccount = errors.New("there is no such service account on the target")
	// ErrUnreadable is the error of an object that the account may not get.
	ErrUnreadable = errors.New("the service account may not get the object, whose values the status would show")
)

// Observers watch the objects of the Applications.
type Observers interface {
	Observe(owner observer.Owner, targets []observer.Target) []observer.Observation
	Strays(owner observer.Owner) []observer.Stray
	Start(owner observer.Owner, targets []observer.Target, seen []map[string]any)
	Stop(owner observer.Owner)
}

// Kinds locates kinds on the target. For a kind that the target does not serve, meta.IsNoMatchError
// holds for the error. Kinds notifies the Application when that may have changed.
type Kinds interface {
	Locate(asking types.NamespacedName, id manifest.ID) (mutate.Object, error)
	// Types returns the types of a kind that is not built in, nil if they are not known. The same
	// definitions have the same pointer. Kinds notifies the Application when to ask again.
	Types(asking types.NamespacedName, id manifest.ID) *apitypes.Types
	// Redefinitions returns how often a definition of the API group has changed. It is always 0 if
	// definitions are not watched.
	Redefinitions(group string) int
	// Forget forgets what an Application asked for. Each pass asks again.
	Forget(asking types.NamespacedName)
}

// Sources fetches the sources behind the URLs of Applications, and translates them.
type Sources interface {
	// Translate returns the resources of a template or archive behind a URL. The error is
	// ErrTranslation for an invalid source, and ErrSource if a rule forbids to fetch or use it.
	Translate(ctx context.Context, source application.Source) ([]any, error)
}

// ErrTranslation is the error of an invalid template or archive.
var ErrTranslation = errors.New("it cannot be translated")

// ErrSource is the error of a URL that must not be fetched, or whose content must not be used. Such
// a content has another digest, or is too large.
var ErrSource = errors.New("it is not taken")

// Secrets makes the values of the Secrets of hooks.
type Secrets interface {
	// Data returns the data of the Secret with the token of a hook, or of the Secret with its
	// certificates. It keeps former values that are still valid. former is nil if there are none.
	Data(app types.NamespacedName, uid types.UID, hook application.Hook, certs bool, former map[string][]byte) (map[string][]byte, error)
}

// Shutdowns asks Applications to shut down.
type Shutdowns interface {
	// Call calls the Service of an Application on the target, and waits only for its answer.
	Call(ctx context.Context, service manifest.Ref, port int32) error
}

// ShutdownDefaults apply to an Application that does not set its own.
type ShutdownDefaults struct {
	// GraceTime bounds one attempt.
	GraceTime time.Duration
	Strategy  application.ShutdownStrategy
	// Retries is the number of attempts after the first one.
	Retries int
}
