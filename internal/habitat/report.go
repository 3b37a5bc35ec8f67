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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// recorder writes Events. Those that differ in their note only are counted as one,
// so that what tells them apart is put into the reference.
type recorder struct{ events.EventRecorder }

func (r recorder) normal(object *corev1.ObjectReference, related *corev1.ObjectReference, reason, note string) {
	r.event(object, related, corev1.EventTypeNormal, reason, note)
}

func (r recorder) warning(object *corev1.ObjectReference, related *corev1.ObjectReference, reason, note string) {
	r.event(object, related, corev1.EventTypeWarning, reason, note)
}

func (r recorder) event(object, related *corev1.ObjectReference, eventType, reason, note string) {
	var other runtime.Object
	if related != nil {
		other = related
	}
	r.Eventf(object, other, eventType, reason, "Reconcile", "%s", cut(note))
}

// report writes the status of a Habitat, if it says anything new, and then tells what
// is new by Events.
func (s *shared) report(ctx context.Context, live *unstructured.Unstructured, judged verdict, cm *corev1.ConfigMap) error {
	name := client.ObjectKeyFromObject(live)
	self := regarding(name, live.GetUID())
	s.tellActed(self, judged, cm)
	peers, file, err := s.peersOf(ctx, live.GetNamespace())
	if err != nil {
		return err
	}
	former := statusOf(live)
	status := s.tell(former, live, judged, cm, peers, file)
	edits := s.editsOf(cm, former)
	if len(edits) > 0 {
		status.Overwritten = &edits[len(edits)-1]
	}
	if equality.Semantic.DeepEqual(former, status) {
		return nil
	}
	if err := s.writeStatus(ctx, live, status); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.tellChange(self, live, former, judged)
	for _, edit := range edits {
		s.recorder.warning(self, &corev1.ObjectReference{
			Kind: edit.Object, Namespace: name.Namespace, FieldPath: cut(strings.Join(edit.Fields, ", ") + " by " + edit.By),
		}, "Overwritten", edit.String())
	}
	return nil
}

// peersOf reads the Application of the peer file, and the file; each nil if there is none.
func (s *shared) peersOf(ctx context.Context, namespace string) (peers, file *corev1.ConfigMap, err error) {
	if peers, err = s.stored(ctx, types.NamespacedName{Namespace: namespace, Name: peersApplication}); err != nil {
		return nil, nil, err
	}
	file, err = s.stored(ctx, types.NamespacedName{Namespace: namespace, Name: peerFile})
	return peers, file, err
}

func (s *shared) editsOf(cm *corev1.ConfigMap, former Status) []Overwritten {
	if cm == nil {
		return nil
	}
	app, err := application.ReadFor(cm, s.cluster)
	if err != nil {
		return nil // the status says so
	}
	return overwrittenSince(app, former.Overwritten)
}

// writeStatus fails if the Habitat was changed since it was read: what is told may
// have been told already.
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

func (s *shared) tellActed(self *corev1.ObjectReference, judged verdict, cm *corev1.ConfigMap) {
	switch judged.acted {
	case created:
		s.recorder.normal(self, referenceTo(cm), "ApplicationCreated", "ConfigMap "+cm.Name+" is the Application of this Habitat")
	case updated:
		s.recorder.normal(self, referenceTo(cm), "ApplicationUpdated", "ConfigMap "+cm.Name+" says what this Habitat does")
	case nothing:
	}
}

// tellChange tells why a Habitat is not carried out, once, and at each change of it
// that its version is deprecated.
func (s *shared) tellChange(self *corev1.ObjectReference, live *unstructured.Unstructured, former Status, judged verdict) {
	accepted := meta.FindStatusCondition(former.Conditions, acceptedCondition)
	if judged.reason != reasonAccepted && judged.reason != reasonGoing &&
		(accepted == nil || accepted.Reason != judged.reason || accepted.Message != cut(judged.message)) {
		s.recorder.warning(self, nil, judged.reason, judged.message)
	}
	if former.ObservedGeneration != live.GetGeneration() && habitat.CustomVersionOf(live.Object) == habitat.V1beta1 {
		s.recorder.warning(self, nil, "Deprecated", "customVersion v1beta1 is deprecated, and will be removed: use customVersion: v1beta2 with spec.v1beta2")
	}
}

func referenceTo(cm *corev1.ConfigMap) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID}
}
