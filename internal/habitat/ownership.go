package habitat

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// The reasons why an Application must not be written.
var (
	// errTaken: the ConfigMap belongs to another owner.
	errTaken = errors.New("it belongs to another owner")
	// errGoing: the ConfigMap belongs to a former Habitat, or is being deleted. Its
	// deletion is an event.
	errGoing = errors.New("it belongs to a former Habitat, and is being deleted")
)

// checkOwner refuses a ConfigMap that is not the Application of the Habitat.
func checkOwner(stored *corev1.ConfigMap, h habitat.Habitat) error {
	controller := metav1.GetControllerOf(stored)
	isHabitats := controller != nil && isHabitat(*controller) && controller.Name == h.Name
	switch {
	case stored.Annotations[application.GeneratedFromAnnotation] != generatedFromOne+h.Name && !isHabitats,
		controller != nil && !isHabitats:
		return errTaken
	case stored.DeletionTimestamp != nil, isHabitats && controller.UID != h.UID:
		return errGoing
	}
	return nil
}

// checkPeersOwner refuses a ConfigMap that is not the Application of a peer file.
func checkPeersOwner(stored *corev1.ConfigMap) error {
	ours := slices.ContainsFunc(stored.OwnerReferences, isHabitat)
	switch {
	case stored.Annotations[application.GeneratedFromAnnotation] != generatedFromAll && !ours,
		metav1.GetControllerOf(stored) != nil:
		return errTaken
	case stored.DeletionTimestamp != nil:
		return errGoing
	}
	return nil
}

// isHabitat reports whether an owner is a Habitat of any version of the API.
func isHabitat(owner metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return owner.Kind == habitat.Kind && group == habitat.Group
}

// hasMarks reports whether the annotations of an object have the marks of the
// Application. Only the agent sets them.
func hasMarks(annotations map[string]string, app *corev1.ConfigMap, id manifest.ID) bool {
	return application.Marks(client.ObjectKeyFromObject(app), app.UID, id).ProveBy(annotations)
}
