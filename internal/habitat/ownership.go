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
	// errAdopts: the Application adopts objects, and does not have the workload yet. The webhook has not asked
	// the user who set that for rights on the workload.
	errAdopts = errors.New("it adopts objects, and does not have the workload yet")
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

// checkAdoption refuses to write a workload into an Application that adopts objects, unless it has the workload
// already: then the user who set that has rights on it.
func checkAdoption(stored, wanted *corev1.ConfigMap) error {
	if settings, _ := application.SettingsOf(stored); !settings.Adopt {
		return nil
	}
	has := identitiesIn(stored)
	if slices.ContainsFunc(identitiesIn(wanted), func(id manifest.ID) bool { return !slices.Contains(has, id) }) {
		return errAdopts
	}
	return nil
}

// identitiesIn returns the identities of the resources in the manifest, as far as it can be read.
func identitiesIn(cm *corev1.ConfigMap) (identities []manifest.ID) {
	text, err := application.SpecOf(cm).ManifestText()
	if err != nil {
		return nil
	}
	resources, err := manifest.Decode([]byte(text))
	if err != nil {
		return nil
	}
	for _, each := range resources {
		resource, _ := each.(map[string]any)
		if id, err := manifest.Identify(resource); err == nil {
			identities = append(identities, id)
		}
	}
	return identities
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
