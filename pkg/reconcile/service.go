package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// service is the Service that receives an Application's shutdown request.
type service struct {
	app       *application.Application
	target    Cluster
	kinds     Kinds
	shutdowns Shutdowns
}

// unheardError is the error of a call to a Service that did not answer.
type unheardError struct{ error }

func (e unheardError) Unwrap() error { return e.error }

// call calls the Service of the Application, and no other.
func (s service) call(ctx context.Context) error {
	at := slices.IndexFunc(s.app.Inventory, func(id manifest.ID) bool {
		return id.APIVersion == "v1" && id.Kind == "Service" && id.Name == application.ShutdownService
	})
	switch {
	case s.shutdowns == nil:
		return errors.New("this agent calls no Services, as it was started without --hooks: have an administrator install the hooks (overlays/hooks)")
	case at < 0:
		return fmt.Errorf("the Application has no Service called %s that could be asked: add one to its manifest, or remove shutdown from its annotation %s", application.ShutdownService, application.HooksAnnotation)
	}
	ref, live, err := s.read(ctx, s.app.Inventory[at])
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("the Service %s does not exist", application.ShutdownService)
	}
	port, err := portOf(live)
	if err != nil {
		return err
	}
	if err := s.shutdowns.Call(ctx, ref, port); err != nil {
		return unheardError{err}
	}
	return nil
}

// portOf returns the first port of a Service that selects Pods of its namespace.
func portOf(live map[string]any) (int32, error) {
	kind, _, _ := unstructured.NestedString(live, "spec", "type")
	selector, _, _ := unstructured.NestedMap(live, "spec", "selector")
	if kind == string(corev1.ServiceTypeExternalName) || len(selector) == 0 {
		return 0, fmt.Errorf("the Service %s does not select Pods of its namespace, and is not called: give it a selector", application.ShutdownService)
	}
	ports, _, _ := unstructured.NestedSlice(live, "spec", "ports")
	if len(ports) == 0 {
		return 0, fmt.Errorf("the Service %s has no port: give it one", application.ShutdownService)
	}
	first, _ := ports[0].(map[string]any)
	port, _ := first["port"].(int64)
	return int32(port), nil //nolint:gosec // the API server requires 1 to 65535
}

// isGone reports whether no workload remains that has to be deleted. Then there is nothing to shut
// down. Released workloads continue to run.
func (s service) isGone(ctx context.Context) (bool, error) {
	for _, id := range s.app.Inventory {
		if !runsPods(id) || plan.IsReleased(s.app, id) {
			continue
		}
		_, live, err := s.read(ctx, id)
		if err != nil || live != nil {
			return false, err
		}
	}
	return true, nil
}

// runsPods reports whether an object runs Pods. Unknown kinds count as such.
func runsPods(id manifest.ID) bool {
	if runs, known := plan.RunsPods(id.Kind); known {
		return runs
	}
	switch group := id.GroupVersionKind().Group; group {
	case "":
		return id.Kind == "ReplicationController"
	case "autoscaling", "policy":
		return false
	default:
		return !strings.HasSuffix(group, ".k8s.io")
	}
}

// read returns an object of the Application, or nil if it does not exist.
func (s service) read(ctx context.Context, id manifest.ID) (manifest.Ref, map[string]any, error) {
	object, err := s.kinds.Locate(s.app.NamespacedName, id)
	switch {
	case meta.IsNoMatchError(err):
		return manifest.Ref{}, nil, nil
	case err != nil:
		return manifest.Ref{}, nil, fmt.Errorf("cannot find the resource of %s: %w", id, err)
	}
	ref := object.Ref
	ref.ID = id
	marks := application.Marks(s.app.NamespacedName, s.app.UID, id)
	live, err := s.target.Patch(ctx, ref, nil, readOnly)
	switch {
	case apierrors.IsNotFound(err):
		return ref, nil, nil
	case err != nil:
		return ref, nil, fmt.Errorf("read %s: %w", id, err)
	case prove(marks, id, live) != nil:
		return ref, nil, nil //nolint:nilerr // another client's object of that name
	}
	return ref, live, nil
}
