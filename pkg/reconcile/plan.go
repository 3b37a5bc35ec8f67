package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

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
	// known of the type.
	mangled schema.Schema
	// desired is that of step 2, without the marks.
	desired map[string]any
	// manifest is what the user wrote.
	manifest map[string]any
	marks    manifest.Marks
}

// errRefused is the error of an Application that is not carried out as it is.
var errRefused = errors.New("refused")

// plan computes the resources of an Application, in the order of its manifest.
func (r *Reconciler) plan(app *application.Application) ([]resource, error) {
	if app.ServiceAccount != "" {
		return nil, fmt.Errorf("%w: this agent does not act as service account %q: leave the annotation %s out",
			errRefused, app.ServiceAccount, application.ServiceAccountAnnotation)
	}
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	if len(refusals) > 0 {
		return nil, fmt.Errorf("%w: %s", errRefused, mutate.Summary(refusals))
	}
	objects := make([]mutate.Object, 0, len(desired.Resources))
	for _, desired := range desired.Resources {
		id, err := manifest.Identify(desired)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		object, err := r.locate(id)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	refs, refusals := r.Scope.Confine(app.Namespace, objects)
	if len(refusals) > 0 {
		return nil, fmt.Errorf("%w: %s", errRefused, mutate.Summary(refusals))
	}
	resources := make([]resource, 0, len(refs))
	for i, ref := range refs {
		planned := resource{
			Target:   observer.Target{Ref: ref},
			mangled:  desired.Schemas[i],
			manifest: desired.Manifest[i],
			marks:    application.Marks(app.NamespacedName, app.UID, ref.ID),
		}
		if err := planned.pin(desired.Resources[i]); err != nil {
			return nil, err
		}
		resources = append(resources, planned)
	}
	return resources, nil
}

// pin makes this the desired state, and with the marks the observer's target.
func (p *resource) pin(desired map[string]any) error {
	p.desired = desired
	p.Schema = apitypes.BuiltIn().Refine(p.mangled, desired)
	p.Desired = p.marks.On(desired)
	p.Marked = p.Schema
	for label := range p.marks.Labels {
		p.Marked = p.Marked.Observe("metadata", "labels", label)
	}
	for annotation := range p.marks.Annotations {
		p.Marked = p.Marked.Observe("metadata", "annotations", annotation)
	}
	var err error
	// Marked follows from the other two.
	if p.Revision, err = revise(p.Schema.Document(), p.Desired); err != nil {
		return fmt.Errorf("digest %s: %w", p.ID, err)
	}
	return nil
}

// locate finds where the target serves a resource.
func (r *Reconciler) locate(id manifest.ID) (mutate.Object, error) {
	gvk := id.GroupVersionKind()
	mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return mutate.Object{}, fmt.Errorf("find the resource of %s: %w", id, err)
	}
	return mutate.ObjectAt(id, mapping), nil
}

// body is what the object is created from: the whole desired state.
func (p *resource) body() map[string]any {
	body := maps.Clone(p.Desired)
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

// learn takes over from the live object what was not known yet (step 6).
func (p *resource) learn(live map[string]any) error {
	return p.pin(p.Schema.LateInitialize(p.desired, withoutMarks(live)))
}

// learned is what is known beyond the manifest.
func (p *resource) learned() map[string]any {
	return p.Schema.Learned(p.desired, p.manifest)
}

// prove gives errConflict for a live object that is not ours.
func prove(marks manifest.Marks, id manifest.ID, live map[string]any) error {
	if !marks.Prove(live) {
		return fmt.Errorf("%w: %s", errConflict, id)
	}
	return nil
}

func targetsOf(resources []resource) []observer.Target {
	targets := make([]observer.Target, 0, len(resources))
	for i := range resources {
		targets = append(targets, resources[i].Target)
	}
	return targets
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
	maps.DeleteFunc(own, func(key string, _ any) bool { return application.IsReserved(key) })
	return own
}
