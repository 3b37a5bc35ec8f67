package plan

import (
	"reflect"
	"slices"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Cache is the plan of an Application, with its inputs: spec, learned values, and the places of the
// objects on the target. It belongs to one Application, by UID.
//
// Its values never change: a pass changes its own objects. Trees are packed and texts are digests,
// because the cache lives as long as the Application.
type Cache struct {
	// Inputs are the inputs of the plan.
	Inputs Inputs

	// mangled is the observer schema of fetched resources. Admission publishes all others.
	mangled schema.Set
	secrets []mutate.HookSecret
	// objects are at their last places. An object without a place has no revision, and is not
	// packed.
	objects []Object
}

// Inputs are the parts of an Application that its plan depends on.
type Inputs struct {
	// Spec is the digest of the spec, Fetched the source behind its URL.
	Spec, Fetched string
	Learned       []map[string]any
}

// TypesOf returns the types of an object whose kind is not built in, nil if they are not known.
type TypesOf func(manifest.ID) *apitypes.Types

// NoTypes is [TypesOf] without a cluster.
func NoTypes(manifest.ID) *apitypes.Types { return nil }

// Of returns the plan of an Application: the cached one if the inputs are equal. A nil Cache is empty.
// The error is ErrRefused.
func (c *Cache) Of(app *application.Application) (*Cache, error) {
	if c.IsOf(app) {
		return c, nil
	}
	inputs := inputsOf(app)
	desired, objects, err := desire(app)
	if err != nil {
		return nil, err
	}
	cached := &Cache{Inputs: inputs, secrets: desired.Secrets, objects: objects}
	if inputs.Fetched != "" {
		cached.mangled = desired.Mangled
	}
	return cached, nil
}

// IsOf reports whether the plan was made of these inputs. A nil Cache is of none.
func (c *Cache) IsOf(app *application.Application) bool {
	return c != nil && reflect.DeepEqual(c.Inputs, inputsOf(app))
}

func inputsOf(app *application.Application) Inputs {
	return Inputs{Spec: app.Spec.Digest(), Fetched: app.Spec.Fetched, Learned: app.Learned}
}

// Pack packs the objects of a new plan, and returns the bytes of the plan.
func (c *Cache) Pack() (size int) {
	for i := range c.objects {
		c.objects[i] = c.objects[i].atRest()
		size += len(c.objects[i].desired.pack) + len(c.objects[i].manifest.pack)
	}
	for _, entry := range c.Inputs.Learned {
		size += len(manifest.Pack(entry))
	}
	return size
}

// Mangled is the mangled observer schema of fetched resources, nil if nothing was fetched.
func (c *Cache) Mangled() []map[string]any {
	if c.Inputs.Fetched == "" {
		return nil
	}
	return c.mangled.Documents()
}

// Secrets are the Secrets of the hooks. Their objects are the last ones of Drafts.
func (c *Cache) Secrets() []mutate.HookSecret { return c.secrets }

// Drafts returns the objects in the order of the manifest, without places, for [Cache.Complete].
func (c *Cache) Drafts() []Object {
	drafts := make([]Object, len(c.objects))
	for i := range c.objects {
		drafts[i] = c.objects[i].draft()
	}
	return drafts
}

// Complete refines drafts whose Ref, Types or Unserved the caller has set. Drafts of the same types, at
// the same place as before, come from the cache.
func (c *Cache) Complete(app *application.Application, drafts []Object) error {
	for i := range drafts {
		unserved := drafts[i].Unserved // the cache does not store it
		if c.objects[i].Revision == "" || c.objects[i].Ref != drafts[i].Ref || c.objects[i].Types != drafts[i].Types {
			drafts[i].owner, drafts[i].ownerUID = app.NamespacedName, app.UID
			if err := drafts[i].complete(app); err != nil {
				return err
			}
			drafts[i].Forms = slices.Clip(drafts[i].Forms) // because a pass may append
			c.objects[i] = drafts[i].atRest()
			c.objects[i].Unserved = nil
			continue
		}
		drafts[i] = c.objects[i]
		drafts[i].Unserved = unserved
	}
	return nil
}

// Find returns the object of the plan that is at a place on the target, and whether there is one. home
// is the namespace there for the Application's own. The object is complete. typesOf returns the types of
// an object. The cache does not change.
func (c *Cache) Find(app *application.Application, at manifest.Ref, home string, typesOf TypesOf) (Object, bool, error) {
	for i := range c.objects[:len(c.objects)-len(c.secrets)] {
		o := c.objects[i].draft()
		namespace := o.manifestNamespace
		if namespace == "" || namespace == app.Namespace {
			namespace = home
		}
		if at.Namespace == "" { // cluster-scoped, whatever the manifest says
			namespace = ""
		}
		if o.Namespace = namespace; !IsSame(o.ID, at.ID) {
			continue
		}
		o.Ref.Resource, o.owner, o.ownerUID, o.Types = at.Resource, app.NamespacedName, app.UID, typesOf(o.ID)
		return o, true, o.complete(app)
	}
	return Object{}, false, nil
}
