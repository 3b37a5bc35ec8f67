// Package apply writes to a target cluster: it creates whole objects, patches single fields,
// and deletes what is proved to be ours. It knows no Application and no observer schema: the
// caller brings patches and proofs.
//
// Every write is guarded: a patch by the resourceVersion of the object that it was made for, a
// deletion by UID and resourceVersion of the object that was proved. A whole object is never
// written over another.
package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// conflictRetries is how often a write is tried again with a newer object before the conflict is
// returned: another client writes faster than we read.
const conflictRetries = 5

// Cluster writes to one cluster.
type Cluster struct {
	client       dynamic.Interface
	fieldManager string
	count        func(reason string)
}

// New makes a Cluster whose writes carry the name of the field manager. Each request is counted
// by its reason: create, repair, delete or read.
func New(client dynamic.Interface, fieldManager string, count func(reason string)) *Cluster {
	return &Cluster{client: client, fieldManager: fieldManager, count: count}
}

// Repair returns the patch that an object needs, empty if it needs none, or an error if the object
// must not be touched.
type Repair func(live map[string]any) (schema.Patch, error)

// Proof returns an error if a live object must not be deleted.
type Proof func(live map[string]any) error

// Create creates an object and returns the answer of the API server. If the object exists already,
// IsAlreadyExists holds for the error.
func (c *Cluster) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	c.count("create")
	live, err := c.resource(ref).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: c.fieldManager})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", ref, err)
	}
	return live.Object, nil
}

// Patch patches a live object as repair decides, and returns the object after it. live is the last
// known object, or nil. After a conflict, Patch tries again with the present object. If the object
// is gone, IsNotFound holds for the error.
func (c *Cluster) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair Repair) (map[string]any, error) {
	for try := 0; ; try++ {
		if live == nil {
			var err error
			if live, err = c.get(ctx, ref); err != nil {
				return nil, err
			}
		}
		patch, err := repair(live)
		if err != nil || len(patch) == 0 {
			return live, err
		}
		patched, err := c.patch(ctx, ref, patch.Guard(resourceVersion(live)), metav1.PatchOptions{FieldManager: c.fieldManager})
		if try == conflictRetries || !c.overtaken(ctx, ref, live, err) {
			return patched, err
		}
		live = nil
	}
}

// TryPatch sends a patch as a dry run, and returns the API server's error. It changes nothing, so it needs no
// guard: the caller makes the patch with [Cluster.Patch]. An empty patch tries whether the object itself is valid.
func (c *Cluster) TryPatch(ctx context.Context, ref manifest.Ref, patch schema.Patch) error {
	dry := metav1.PatchOptions{FieldManager: c.fieldManager, DryRun: []string{metav1.DryRunAll}}
	_, err := c.patch(ctx, ref, slices.Concat(schema.Patch{}, patch), dry)
	return err
}

// overtaken reports whether a patch failed because the object has changed since. The server checks
// the guard last. An operation that does not fit the present object, such as one on a removed list
// element, has the same answer as any mistake.
func (c *Cluster) overtaken(ctx context.Context, ref manifest.Ref, live map[string]any, err error) bool {
	if !apierrors.IsInvalid(err) {
		return apierrors.IsConflict(err)
	}
	now, err := c.get(ctx, ref)
	return apierrors.IsNotFound(err) || err == nil && resourceVersion(now) != resourceVersion(live)
}

func (c *Cluster) patch(ctx context.Context, ref manifest.Ref, patch schema.Patch, options metav1.PatchOptions) (map[string]any, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch of %s: %w", ref, err)
	}
	c.count("repair")
	live, err := c.resource(ref).Patch(ctx, ref.Name, types.JSONPatchType, body, options)
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", ref, err)
	}
	return live.Object, nil
}

// Delete deletes an object if proof allows it, and its dependents in the background. It returns the
// object if a finalizer still protects it, or nil if it is gone.
func (c *Cluster) Delete(ctx context.Context, ref manifest.Ref, proof Proof) (map[string]any, error) {
	for try := 0; ; try++ {
		live, err := c.present(ctx, ref)
		if live == nil || err != nil {
			return nil, err
		}
		if err := proof(live); err != nil {
			return live, err
		}
		err = c.delete(ctx, ref, live)
		switch {
		case apierrors.IsConflict(err) && try < conflictRetries:
			continue // it changed, so the proof is needed again
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return live, err
		}
		left, err := c.present(ctx, ref)
		if left != nil && uid(left) != uid(live) {
			return nil, err // another object has taken its name
		}
		return left, err
	}
}

func (c *Cluster) delete(ctx context.Context, ref manifest.Ref, live map[string]any) error {
	object := unstructured.Unstructured{Object: live}
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version, policy := object.GetUID(), object.GetResourceVersion(), metav1.DeletePropagationBackground
	c.count("delete")
	err := c.resource(ref).Delete(ctx, ref.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &policy,
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	return nil
}

// present returns the object, nil if there is none.
func (c *Cluster) present(ctx context.Context, ref manifest.Ref) (map[string]any, error) {
	live, err := c.get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

func (c *Cluster) get(ctx context.Context, ref manifest.Ref) (map[string]any, error) {
	c.count("read")
	live, err := c.resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return live.Object, nil
}

func (c *Cluster) resource(ref manifest.Ref) dynamic.ResourceInterface {
	return c.client.Resource(ref.Resource).Namespace(ref.Namespace)
}

func uid(live map[string]any) types.UID {
	return (&unstructured.Unstructured{Object: live}).GetUID()
}

func resourceVersion(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}
