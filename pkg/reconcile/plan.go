package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// resource is one resource of an Application, as it is to be on the target.
// The target of the observer has the marks of the Application, which are in no
// document, but always observed.
type resource struct {
	observer.Target

	// mangled is the observer schema; that of the target is refined by what is
	// known of the type, and of how the API server writes the values.
	mangled schema.Schema
	// saidNamespace is that of the manifest, empty if it says none.
	saidNamespace string
	// wanted is what is desired by step 2, without the marks, and marked the same with
	// them, where it is to be: the observer's.
	wanted, marked tree
	// written is what the user wrote.
	written tree
	// forms are how the API server has written desired values.
	forms []schema.Form
	// owner is the Application whose marks it has, ownerUID empty: it has none.
	owner    types.NamespacedName
	ownerUID types.UID
	// forgot: the API server refuses what was learned.
	forgot bool
	// unserved is why the target has no place for the resource.
	unserved error
}

// shapes has the schemas of all plans share what is equal in them.
var shapes schema.Pool

// errRefused is the error of an Application that is not carried out as it is.
var errRefused = errors.New("refused")

// errUntranslatable is that of one whose template or archive is not legal.
var errUntranslatable = fmt.Errorf("%w: it cannot be translated", errRefused)

// plan is what an Application wants.
type plan struct {
	// spec is the digest of the Application's.
	spec string
	// resources are in the order of the manifest.
	resources []resource
	secrets   []hookSecret
}

// plan gives what an Application wants, as it was computed before if that was
// from the same.
func (r *Reconciler) plan(app *application.Application, known *memory) (plan, error) {
	wanted, err := known.planned.of(app)
	switch {
	case err != nil:
		return plan{}, err
	case len(wanted.secrets) > 0 && r.Secrets == nil:
		return plan{}, errNoHooks
	case app.Spec.Fetched != "":
		app.Mangled = wanted.mangled.Documents()
	}
	resources := wanted.drafted()
	if err := r.locate(app, resources); err != nil {
		return plan{}, err
	}
	if err := wanted.complete(app, resources); err != nil {
		return plan{}, err
	}
	known.planned = wanted
	planned := plan{spec: wanted.spec, resources: resources[:len(resources)-len(wanted.secrets)]}
	for i, secret := range wanted.secrets {
		planned.secrets = append(planned.secrets, hookSecret{
			resource: resources[len(planned.resources)+i], hook: secret.Hook, certs: secret.Certs,
		})
	}
	return planned, nil
}

// refusedBy gives the error of a spec with refusals.
func refusedBy(refusals field.ErrorList) error {
	switch {
	case mutate.IsOfTranslation(refusals):
		return fmt.Errorf("%w: %s", errUntranslatable, mutate.Summary(refusals))
	case len(refusals) > 0:
		return fmt.Errorf("%w: %s", errRefused, mutate.Summary(refusals))
	}
	return nil
}

// complete refines what is planned by what is known of the resource.
func (p *resource) complete(app *application.Application) error {
	if err := p.remember(app.Learned, app.Namespace); err != nil {
		return err
	}
	return p.pin(p.desired())
}

// resourcesOf gives what is desired, wherever it belongs.
func resourcesOf(desired mutate.Desired) ([]resource, error) {
	resources := make([]resource, len(desired.Resources))
	for i := range resources {
		id, err := manifest.Identify(desired.Resources[i])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		resources[i] = resource{mangled: shapes.Share(desired.Schemas[i]), wanted: treeOf(desired.Resources[i]), written: treeOf(desired.Manifest[i])}
		resources[i].ID, resources[i].saidNamespace = id, id.Namespace
	}
	return resources, nil
}

// locate finds where the target serves the resources, and puts them where they
// may be. One that is not served does not hold up the others.
func (r *Reconciler) locate(app *application.Application, resources []resource) error {
	var served []int
	var objects []mutate.Object
	for i := range resources {
		object, err := r.Kinds.Locate(app.NamespacedName, resources[i].ID)
		if unanswered(err) {
			return fmt.Errorf("find the resource of %s: %w", resources[i].ID, err)
		}
		if err != nil {
			resources[i].unserved = fmt.Errorf("find the resource of %s: %w", resources[i].ID, err)
			continue
		}
		served, objects = append(served, i), append(objects, object)
	}
	refs, refusals := r.Scope.Confine(r.homeOf(app), objects)
	if len(refusals) > 0 {
		return fmt.Errorf("%w: %s", errRefused, mutate.Summary(mutate.Relocate(refusals, app.Spec)))
	}
	for i, ref := range refs {
		if !r.Namespaces.allow(ref.Namespace) {
			return fmt.Errorf("%w: %s is in namespace %q, which is none of those of cluster %s where this agent acts: move the Application to another cluster or namespace",
				errRefused, ref, ref.Namespace, r.ClusterName)
		}
		resources[served[i]].Ref = ref
	}
	return nil
}

// desired is what is wanted, without the marks.
func (p *resource) desired() map[string]any { return p.wanted.look() }

// manifest is what the user wrote.
func (p *resource) manifest() map[string]any { return p.written.look() }

// marks are those of the Application.
func (p *resource) marks() manifest.Marks {
	if p.ownerUID == "" {
		return manifest.Marks{}
	}
	return application.Marks(p.owner, p.ownerUID, p.ID)
}

// drafted gives the resource as it was before the target was asked for its place.
func (p *resource) drafted() resource {
	draft := resource{mangled: p.mangled, wanted: p.wanted, written: p.written, saidNamespace: p.saidNamespace}
	draft.ID = p.ID
	draft.ID.Namespace = p.saidNamespace
	return draft
}

// atRest gives the resource with its objects packed.
func (p *resource) atRest() resource {
	rests := *p
	rests.wanted, rests.marked, rests.written = p.wanted.atRest(), p.marked.atRest(), p.written.atRest()
	if rests.written.equal(rests.wanted) { // nothing was learned: one of them is enough
		rests.written = rests.wanted
	}
	return rests
}

// pin makes this the desired state, and with the marks the observer's target.
func (p *resource) pin(desired map[string]any) error {
	p.wanted = treeOf(desired)
	p.Schema = apitypes.BuiltIn().Refine(p.mangled, desired)
	p.forms = p.Schema.Keep(desired, p.forms)
	p.Schema = shapes.Share(p.Schema.Accept(p.forms))
	p.marked = treeOf(p.marks().On(p.placed(desired))).packed()
	p.Desired = p.marked.pack
	p.Marked = shapes.Share(p.mark(p.Schema))
	var err error
	// Marked follows from the others.
	if p.Revision, err = revise(p.Schema.Document(), p.Desired, p.forms); err != nil {
		return fmt.Errorf("digest %s: %w", p.ID, err)
	}
	return nil
}

// placed gives an object that says its namespace with the one where it is: the
// agent may have mapped it.
func (p *resource) placed(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if p.Namespace == "" || metadata["namespace"] == nil || metadata["namespace"] == p.Namespace {
		return object
	}
	return inNamespace(object, p.Namespace)
}

// asWritten gives an object of the target with the namespace that the manifest
// says, by which the documents know it.
func (p *resource) asWritten(object map[string]any) map[string]any {
	described, _ := p.manifest()["metadata"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	if described["namespace"] == nil || metadata["namespace"] == nil {
		return object
	}
	return inNamespace(object, described["namespace"])
}

func inNamespace(object map[string]any, namespace any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["namespace"] = namespace
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}

// body is what the object is created from: the whole desired state.
func (p *resource) body() map[string]any {
	body := maps.Clone(p.marked.look())
	metadata, _ := body["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if p.Namespace == "" {
		delete(metadata, "namespace") // cluster-scoped, whatever the manifest says
	} else {
		metadata["namespace"] = p.Namespace
	}
	body["metadata"] = metadata
	return body
}

// prove gives errForeign for a live object that is not ours.
func prove(marks manifest.Marks, id manifest.ID, live map[string]any) error {
	if !marks.Prove(live) {
		return fmt.Errorf("%w: %s", errForeign, id)
	}
	return nil
}

func revise(parts ...any) (string, error) {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(parts); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// withoutMarks leaves our labels and annotations out of an object or of its
// projection, so that they get into no document where labels or annotations are
// observed as a whole.
func withoutMarks(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	for _, name := range []string{"labels", "annotations"} {
		values, ok := metadata[name].(map[string]any)
		if !ok {
			continue
		}
		if values = unreserved(values); len(values) > 0 {
			metadata[name] = values
		} else {
			delete(metadata, name)
		}
	}
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}

func unreserved(values map[string]any) map[string]any {
	own := maps.Clone(values)
	maps.DeleteFunc(own, func(key string, _ any) bool { return manifest.IsReserved(key) })
	return own
}
