package hooks

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Applications returns the Application of a name as the agent of this cluster sees it,
// nil if there is none. An error means that the answer is not known now.
type Applications interface {
	Get(ctx context.Context, name types.NamespacedName) (*application.Application, error)
}

// ErrAnotherActs is the error of [Applications] if another replica of the agent acts for the Application.
var ErrAnotherActs = errors.New("another replica acts for the Application")

// ErrNotDegraded is the error of [Actions.Retry] if the shutdown was not given up.
var ErrNotDegraded = errors.New("the shutdown was not given up")

// Actions carries out what a Pod requested and proved. Each method may be called more
// than once, and returns the state that the Application then has. Any error but
// ErrNotDegraded means that the action is not possible now.
type Actions interface {
	// Complete deletes the Application.
	Complete(ctx context.Context, app *application.Application) (application.State, error)
	// Shutdown records that the Application has shut down. It has no effect unless a
	// shutdown was requested.
	Shutdown(ctx context.Context, app *application.Application) (application.State, error)
	// Retry requests the shutdown again after it was given up.
	Retry(ctx context.Context, app *application.Application) (application.State, error)
}

// action is what a request asks for: the last part of its path.
type action string

const (
	complete action = action(application.Complete)
	shutdown action = action(application.Shutdown)
	retry    action = "retry"
)

func (a action) isKnown() bool { return a == complete || a == shutdown || a == retry }

// hook returns the hook whose token proves the right to an action.
func (a action) hook() application.Hook {
	if a == complete {
		return application.Complete
	}
	return application.Shutdown
}

// target is the meaning of a path.
type target struct {
	app    types.NamespacedName
	action action
}

// targetOf reads a path. It accepts only names that are valid in the API.
func targetOf(path string) (target, bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 7 {
		return target{}, false
	}
	t := target{app: types.NamespacedName{Namespace: parts[3], Name: parts[5]}, action: action(parts[6])}
	ok := t.action.isKnown() && path == application.HookPath(t.app, string(t.action)) &&
		len(validation.IsDNS1123Label(t.app.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(t.app.Name)) == 0
	if !ok {
		return target{}, false
	}
	return t, true
}
