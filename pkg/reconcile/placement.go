package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

// Namespaces say where the objects of Applications are on the target. The agent has them
// from its administrator, and never from the hub.
type Namespaces struct {
	// Map has the namespaces on the target by those on the hub; one that it does not have
	// is the same on both.
	Map map[string]string
	// Allowed are those on the target where objects may be; none means all.
	Allowed []string
}

// Of returns the namespace on the target of an Application's on the hub.
func (n Namespaces) Of(hub string) string { return cmp.Or(n.Map[hub], hub) }

func (n Namespaces) allow(target string) bool {
	return target == "" || len(n.Allowed) == 0 || slices.Contains(n.Allowed, target)
}

// residence is where the objects of Applications are on this target, and who writes them.
type residence struct {
	cluster        string
	scope          mutate.Scope
	namespaces     Namespaces
	requireAccount bool
	// target identifies the target, whatever its name; nil: not known.
	target func() types.UID
}

// accountOf returns who writes the objects of the Application: the zero value is the agent.
func (r residence) accountOf(app *application.Application) Account {
	name := mutate.Accounts{Required: r.requireAccount}.For(app.ServiceAccount)
	if name == "" {
		return Account{}
	}
	return Account{Namespace: r.namespaces.Of(app.Namespace), Name: name}
}

// confine returns where the objects of the Application may be; the error is ErrRefused.
func (r residence) confine(app *application.Application, objects []mutate.Object) ([]manifest.Ref, error) {
	home := mutate.Home{Hub: app.Namespace, Target: r.namespaces.Of(app.Namespace), Account: r.accountOf(app) != Account{}}
	refs, refusals := r.scope.Confine(home, objects)
	if len(refusals) > 0 {
		return nil, fmt.Errorf("%w: %s", plan.ErrRefused, mutate.Summary(mutate.Relocate(refusals, app.Spec)))
	}
	for _, ref := range refs {
		if !r.namespaces.allow(ref.Namespace) {
			return nil, fmt.Errorf("%w: %s is in namespace %q, which is none of those of cluster %s where this agent acts: move the Application to another cluster or namespace",
				plan.ErrRefused, ref, ref.Namespace, r.cluster)
		}
	}
	return refs, nil
}

// reaches reports whether objects of the Application may be in the namespace.
func (r residence) reaches(app *application.Application, namespace string) bool {
	return r.scope == mutate.ClusterScope || namespace == r.namespaces.Of(app.Namespace)
}

// namespaceMark stands in the identity of a target between its UID and the namespace of the
// objects, if that has another name than the Application's.
const namespaceMark = "/"

// identityFor identifies the cluster and namespace where the objects of an Application are,
// whatever they are called; empty if that is not known.
func (r residence) identityFor(app *application.Application) types.UID {
	if r.target == nil {
		return ""
	}
	target := r.target()
	if namespace := r.namespaces.Of(app.Namespace); target != "" && namespace != app.Namespace {
		target += types.UID(namespaceMark + namespace)
	}
	return target
}

// isHere reports whether an identity is of this target, by whatever name: to delete there
// what a former cluster holds would delete it where the Application was moved to.
func (r residence) isHere(identity types.UID) bool {
	uid, _, _ := strings.Cut(string(identity), namespaceMark)
	return r.target != nil && uid != "" && uid == string(r.target())
}

// apart returns the objects that an Application holds here and that are not where it was
// moved to, though that is the same target: its agent has them in another namespace.
func (r residence) apart(app *application.Application) []manifest.ID {
	here := r.namespaces.Of(app.Namespace)
	_, there, mapped := strings.Cut(string(app.Status.Target), namespaceMark)
	if !mapped {
		there = app.Namespace
	}
	return slices.DeleteFunc(slices.Clone(app.Inventory), func(id manifest.ID) bool { return here == there || id.Namespace != here })
}
