package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// Namespaces decide where the objects of Applications are on the target. The agent has them from
// its administrator, never from the hub.
type Namespaces struct {
	// Map leads from a namespace on the hub to one on the target. A namespace that it omits has the
	// same name on both.
	Map map[string]string
	// Allowed are the namespaces of the target where objects may be. An empty list allows all.
	Allowed []string
}

// Of returns the namespace on the target for an Application's namespace on the hub.
func (n Namespaces) Of(hub string) string { return cmp.Or(n.Map[hub], hub) }

func (n Namespaces) allow(target string) bool {
	return target == "" || len(n.Allowed) == 0 || slices.Contains(n.Allowed, target)
}

// placement decides where the objects of Applications are on this target, and which account writes
// them.
type placement struct {
	cluster        string
	scope          mutate.Scope
	namespaces     Namespaces
	requireAccount bool
	// target identifies the target, independently of its name. It is nil if that is not known.
	target func() types.UID
}

// accountOf returns the account that writes the objects of the Application. The zero value is the
// agent.
func (r placement) accountOf(app *application.Application) Account {
	name := mutate.Accounts{Required: r.requireAccount}.For(app.ServiceAccount)
	if name == "" {
		return Account{}
	}
	return Account{Namespace: r.namespaces.Of(app.Namespace), Name: name}
}

// confine returns the places of the objects. The error is ErrRefused if an object may not be there.
func (r placement) confine(app *application.Application, objects []mutate.Object) ([]manifest.Ref, error) {
	home := mutate.Home{Hub: app.Namespace, Target: r.namespaces.Of(app.Namespace), Account: r.accountOf(app) != Account{}}
	refs, refusals := r.scope.Confine(home, objects)
	if len(refusals) > 0 {
		return nil, fmt.Errorf("%w: %s", plan.ErrRefused, mutate.Summary(mutate.Relocate(refusals, app.Spec)))
	}
	for _, ref := range refs {
		if !r.namespaces.allow(ref.Namespace) {
			return nil, fmt.Errorf("%w: %s is in namespace %q, where this agent of cluster %s does not act: move the Application to another cluster or namespace",
				plan.ErrRefused, ref, ref.Namespace, r.cluster)
		}
	}
	return refs, nil
}

// reaches reports whether objects of the Application may be in the namespace.
func (r placement) reaches(app *application.Application, namespace string) bool {
	return r.scope == mutate.ClusterScope || namespace == r.namespaces.Of(app.Namespace)
}

// namespaceMark separates the UID of a target from the namespace of the objects in an identity. It
// is used if that namespace differs from the Application's.
const namespaceMark = "/"

// identityFor identifies the cluster and namespace of an Application's objects, independently of
// their names. It returns "" if they are not known.
func (r placement) identityFor(app *application.Application) types.UID {
	if r.target == nil {
		return ""
	}
	target := r.target()
	if namespace := r.namespaces.Of(app.Namespace); target != "" && namespace != app.Namespace {
		target += types.UID(namespaceMark + namespace)
	}
	return target
}

// isHere reports whether an identity is of this target, under any name. A deletion of the former
// cluster's objects would then delete those at the new place.
func (r placement) isHere(identity types.UID) bool {
	uid, _, _ := strings.Cut(string(identity), namespaceMark)
	return r.target != nil && uid != "" && uid == string(r.target())
}

// apart returns the objects that an Application has here, outside its new place on this same
// target. The other agent of this target uses another namespace.
func (r placement) apart(app *application.Application) []manifest.ID {
	here := r.namespaces.Of(app.Namespace)
	_, there, mapped := strings.Cut(string(app.Status.Target), namespaceMark)
	if !mapped {
		there = app.Namespace
	}
	return slices.DeleteFunc(slices.Clone(app.Inventory), func(id manifest.ID) bool { return here == there || id.Namespace != here })
}
