package habitat

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// report writes the status of a Habitat if it has changed, and then the Events about the
// changes.
func (s *shared) report(ctx context.Context, live *unstructured.Unstructured, v verdict) error {
	name := client.ObjectKeyFromObject(live)
	self := habitatReference(name, live.GetUID())
	switch v.acted {
	case created:
		s.recorder.event(corev1.EventTypeNormal, self, configMapReference(v.application), "ApplicationCreated",
			"ConfigMap "+v.application.Name+" is the Application of this Habitat")
	case updated:
		s.recorder.event(corev1.EventTypeNormal, self, configMapReference(v.application), "ApplicationUpdated",
			"ConfigMap "+v.application.Name+" says what this Habitat does")
	}
	peers, file, err := s.peersOf(ctx, live.GetNamespace())
	if err != nil {
		return err
	}
	former := statusOf(live)
	status := s.nextStatus(former, live, v, peers, file)
	edits := s.overwrittenIn(v.application, former.Overwritten)
	if len(edits) > 0 {
		status.Overwritten = &edits[len(edits)-1]
	}
	if equality.Semantic.DeepEqual(former, status) {
		return nil
	}
	if err := s.writeStatus(ctx, live, status); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.warn(self, live, former, v)
	for _, edit := range edits {
		s.recorder.event(corev1.EventTypeWarning, self, &corev1.ObjectReference{
			Kind: edit.Object, Namespace: name.Namespace, FieldPath: cut(strings.Join(edit.Fields, ", ") + " by " + edit.By),
		}, "Overwritten", edit.String())
	}
	return nil
}

// overwrittenIn returns the edits of an Application's objects that were reverted since
// the last reported one.
func (s *shared) overwrittenIn(cm *corev1.ConfigMap, reported *Overwritten) []Overwritten {
	if cm == nil {
		return nil
	}
	app, err := application.ReadFor(cm, s.cluster)
	if err != nil {
		return nil // the status says so
	}
	return overwrittenSince(app, reported)
}

// writeStatus fails if the Habitat has changed since it was read, because another pass
// may have reported the same.
func (s *shared) writeStatus(ctx context.Context, live *unstructured.Unstructured, status Status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return err
	}
	after := live.DeepCopy()
	after.Object["status"] = fields
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	err = s.client.Status().Patch(ctx, after, patch, client.FieldOwner(Name))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write the status: %w", err)
	}
	return err
}

// warn writes an Event when the reason for which a Habitat is not accepted changes. It also
// writes one at each change of a Habitat of the deprecated version.
func (s *shared) warn(self *corev1.ObjectReference, live *unstructured.Unstructured, former Status, v verdict) {
	accepted := meta.FindStatusCondition(former.Conditions, acceptedCondition)
	if v.reason != reasonAccepted && v.reason != reasonPrevious &&
		(accepted == nil || accepted.Reason != v.reason || accepted.Message != cut(v.message)) {
		s.recorder.event(corev1.EventTypeWarning, self, nil, v.reason, v.message)
	}
	if former.ObservedGeneration != live.GetGeneration() && habitat.CustomVersionOf(live.Object) == habitat.V1beta1 {
		s.recorder.event(corev1.EventTypeWarning, self, nil, "Deprecated",
			"customVersion v1beta1 is deprecated, and will be removed: use customVersion: v1beta2 with spec.v1beta2")
	}
}
