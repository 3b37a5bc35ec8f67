package habitat

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// setOf reads the StatefulSet of a Habitat by its Application; nil: there is none that
// carries the Application's marks.
func setOf(ctx context.Context, from client.Reader, h habitat.Habitat, cm *corev1.ConfigMap) (*appsv1.StatefulSet, error) {
	var set appsv1.StatefulSet
	err := from.Get(ctx, h.NamespacedName, &set)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id := manifest.ID{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: h.Namespace, Name: h.Name}
	if !carries(set.Annotations, cm, id) {
		return nil, nil
	}
	return &set, nil
}

// carries tells if annotations are the marks of an object of the Application, which
// the agent alone sets.
func carries(annotations map[string]string, cm *corev1.ConfigMap, id manifest.ID) bool {
	return application.Marks(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, cm.UID, id).ProveBy(annotations)
}

// differs gives what the StatefulSet has otherwise than the Habitat says. Both are
// brought to the form that the types of the API have: what is written otherwise and
// means the same is none.
func differs(h habitat.Habitat, filesImage string, set *appsv1.StatefulSet) (schema.Differences, error) {
	wanted := h.Workload(filesImage)
	fields, err := schema.Default(wanted)
	if err != nil {
		return nil, err
	}
	var typed appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, &typed); err != nil {
		return nil, err
	}
	desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return nil, err
	}
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return nil, err
	}
	live["apiVersion"], live["kind"] = wanted["apiVersion"], wanted["kind"] // which caches leave out
	return fields.Compare(desired, live), nil
}

const claimsField = "volumeClaimTemplates"

// isPossible gives why the StatefulSet that there is cannot become what the Habitat
// says: the API server would refuse it again and again.
func (s *shared) isPossible(ctx context.Context, h habitat.Habitat, cm *corev1.ConfigMap) error {
	set, err := setOf(ctx, s.client, h, cm)
	if err != nil || set == nil || set.DeletionTimestamp != nil {
		return err
	}
	if h.CustomVersion != habitat.V1beta2 {
		return immutableError{errors.New("customVersion: the Habitat has a StatefulSet, which only v1beta2 has: set it back, or delete the Habitat and create it anew")}
	}
	found, err := differs(h, s.filesImage, set)
	if err != nil {
		return err
	}
	wantsClaim := h.Spec.Storage != nil
	changes := wantsClaim != (len(set.Spec.VolumeClaimTemplates) > 0)
	for _, difference := range found {
		changes = changes || strings.HasPrefix(difference.Path.String(), "spec."+claimsField)
	}
	if changes {
		return immutableError{errors.New("spec.v1beta2.persistentStorage: a StatefulSet cannot change its claim templates: " +
			"set it back, or delete the Habitat, whose claims stay, and create it anew")}
	}
	return nil
}
