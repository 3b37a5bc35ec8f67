package habitat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// The reasons of the condition Accepted. The Events have the same reasons.
const (
	reasonAccepted         = "Accepted"
	reasonValidationFailed = "ValidationFailed"
	reasonUnknownVersion   = "UnknownVersion"
	reasonSecretNotFound   = "SecretNotFound"
	reasonNameConflict     = "NameConflict"
	reasonPrevious         = "PreviousTerminating"
	reasonImmutable        = "ImmutableField"
	reasonRefused          = "Refused"
)

// verdict is whether a Habitat is accepted, and why not.
type verdict struct {
	reason, message string
	// application is the Application of the Habitat, or nil.
	application *corev1.ConfigMap
	// acted is what was done with the Application.
	acted done
}

// accept writes the Application of a Habitat. The error is one that a new try may resolve.
// The Application of a Habitat that is not accepted stays unchanged.
func (s *shared) accept(ctx context.Context, live *unstructured.Unstructured) (verdict, error) {
	if version := habitat.CustomVersionOf(live.Object); !isKnown(version) {
		return verdict{reason: reasonUnknownVersion, message: fmt.Sprintf(
			"there is no controller for customVersion %q: there are %s and %s (deprecated)", cutName(version), habitat.V1beta2, habitat.V1beta1)}, nil
	}
	h, refusals := habitat.Parse(live.Object)
	if len(refusals) > 0 {
		return s.refuse(ctx, live, reasonValidationFailed, refusals.ToAggregate().Error())
	}
	missing, unread, err := s.missingSecrets(ctx, h)
	if err != nil {
		return verdict{}, err
	}
	if len(missing) > 0 {
		return s.refuse(ctx, live, reasonSecretNotFound, "create Secret "+strings.Join(missing, ", and "))
	}
	wanted, err := s.applicationOf(h)
	if err != nil {
		return s.refuse(ctx, live, reasonValidationFailed, err.Error())
	}
	cm, acted, err := s.ensure(ctx, wanted, func(stored *corev1.ConfigMap) error {
		if err := checkOwner(stored, h); err != nil {
			return err
		}
		if err := checkAdoption(stored, wanted); err != nil {
			return err
		}
		return s.checkImmutable(ctx, h, stored)
	})
	var immutable immutableError
	text := "ConfigMap " + wanted.Name
	switch {
	case err == nil:
		return verdict{reason: reasonAccepted, message: unread, application: cm, acted: acted}, nil
	case errors.Is(err, errTaken):
		return verdict{reason: reasonNameConflict, message: text + " belongs to another owner: delete or rename it, or give the Habitat another name"}, nil
	case errors.Is(err, errAdopts):
		return verdict{reason: reasonNameConflict, message: text + " has the annotation krake.dev/adopt, and not yet the workload: " +
			"remove the annotation, and set it again afterwards"}, nil
	case errors.Is(err, errGoing):
		return verdict{reason: reasonPrevious, message: text + " belongs to a former Habitat: the agent waits until it is gone"}, nil
	case errors.As(err, &immutable):
		return verdict{reason: reasonImmutable, message: immutable.Error(), application: cm}, nil
	case isRefusal(err):
		return verdict{reason: reasonRefused, message: text + ": " + err.Error(), application: cm}, nil
	}
	return verdict{}, err
}

// cutName shortens a name to about the length of a label.
func cutName(name string) string {
	const most = 63
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "..."
	}
	return name
}

// refuse returns the verdict on a Habitat whose Application is not written.
func (s *shared) refuse(ctx context.Context, live *unstructured.Unstructured, reason, message string) (verdict, error) {
	cm, err := s.stored(ctx, types.NamespacedName{Namespace: live.GetNamespace(), Name: applicationPrefix + live.GetName()})
	if err != nil {
		return verdict{}, err
	}
	if cm != nil && !metav1.IsControlledBy(cm, live) {
		cm = nil
	}
	return verdict{reason: reason, message: message, application: cm}, nil
}

// missingSecrets describes the Secrets that a Habitat names and that do not exist. It asks for each
// by its name, and for the metadata only. Where the process may not read Secrets, the Pods wait for them:
// unread names them.
func (s *shared) missingSecrets(ctx context.Context, h habitat.Habitat) (missing []string, unread string, err error) {
	var names []string
	for _, secret := range h.Secrets() {
		err := s.live.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: secret.Name}, newSecret())
		switch {
		case apierrors.IsForbidden(err):
			names = append(names, strconv.Quote(secret.Name))
		case apierrors.IsNotFound(err) && secret.Key != "":
			missing = append(missing, fmt.Sprintf("%q with key %s (%s)", secret.Name, secret.Key, secret.Path))
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Sprintf("%q (%s)", secret.Name, secret.Path))
		case err != nil:
			return nil, "", err
		}
	}
	if len(names) > 0 {
		unread = "the Pods wait for Secret " + strings.Join(names, ", ") + " if it does not exist: " +
			"krake-habitat may not look for it, unless ClusterRole krake-habitat-secrets is bound here"
	}
	return missing, unread, nil
}

// immutableError: the workload of the Habitat cannot change in this way.
type immutableError string

func (e immutableError) Error() string { return string(e) }

// checkImmutable refuses a change that the API server would refuse for the existing
// StatefulSet again and again.
func (s *shared) checkImmutable(ctx context.Context, h habitat.Habitat, cm *corev1.ConfigMap) error {
	set, err := statefulSetOf(ctx, s.client, h, cm)
	if err != nil || set == nil || set.DeletionTimestamp != nil {
		return err
	}
	if h.CustomVersion != habitat.V1beta2 {
		return immutableError("customVersion: the Habitat has a StatefulSet, which only v1beta2 has: set it back, or delete the Habitat and create it anew")
	}
	found, err := differences(h, s.filesImage, set)
	if err != nil {
		return err
	}
	wantsClaim, hasClaim := h.Spec.Storage != nil, len(set.Spec.VolumeClaimTemplates) > 0
	isOfClaims := func(d schema.Difference) bool { return strings.HasPrefix(d.Path.String(), "spec.volumeClaimTemplates") }
	if wantsClaim != hasClaim || slices.ContainsFunc(found, isOfClaims) {
		return immutableError("spec.v1beta2.persistentStorage: a StatefulSet cannot change its claim templates: " +
			"set it back, or delete the Habitat, whose claims stay, and create it anew")
	}
	return nil
}

// isRefusal reports whether the API server repeats the answer until a user changes
// something.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
