package habitat

import (
	"context"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// done is what [shared.ensure] did with an Application.
type done string

const (
	nothing done = ""
	created done = "created"
	updated done = "updated"
)

// ensure creates an Application, or sets its wanted labels, annotations, owners and
// spec. Everything else in it belongs to users and agents. An existing Application is
// not changed if check returns an error for it.
func (s *shared) ensure(ctx context.Context, wanted *corev1.ConfigMap, check func(stored *corev1.ConfigMap) error) (*corev1.ConfigMap, done, error) {
	stored, err := s.stored(ctx, client.ObjectKeyFromObject(wanted))
	if err != nil {
		return nil, nothing, err
	}
	if stored == nil {
		err := s.client.Create(ctx, wanted, client.FieldOwner(Name))
		switch {
		case err == nil:
			return wanted, created, nil
		case !apierrors.IsAlreadyExists(err):
			return nil, nothing, err
		}
		// The cache is stale, or does not select the ConfigMap, because it has lost its label.
		stored = &corev1.ConfigMap{}
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(wanted), stored); err != nil {
			return nil, nothing, err
		}
	}
	if err := check(stored); err != nil {
		return stored, nothing, err
	}
	after := overlay(stored, wanted)
	if reflect.DeepEqual(stored, after) {
		return stored, nothing, nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, after, patch, client.FieldOwner(Name)); err != nil {
		return stored, nothing, err
	}
	return after, updated, nil
}

// overlay returns the stored Application with everything that is wanted.
func overlay(stored, wanted *corev1.ConfigMap) *corev1.ConfigMap {
	cm := stored.DeepCopy()
	cm.Labels = merge(cm.Labels, wanted.Labels)
	cm.Annotations = merge(cm.Annotations, wanted.Annotations)
	if _, elsewhere := wanted.Annotations[application.ClusterAnnotation]; !elsewhere {
		delete(cm.Annotations, application.ClusterAnnotation) // its Pods would not find the others
	}
	cm.OwnerReferences = wanted.OwnerReferences
	maps.DeleteFunc(cm.Data, func(key, _ string) bool { _, ours := wanted.Data[key]; return application.IsSpecKey(key) && !ours })
	maps.DeleteFunc(cm.BinaryData, func(key string, _ []byte) bool { return application.IsSpecKey(key) })
	changed := maps.Clone(wanted.Data)
	maps.DeleteFunc(changed, func(key, text string) bool { return isSameText(cm.Data[key], text) })
	cm.Data = merge(cm.Data, changed)
	return cm
}

func merge(values, wanted map[string]string) map[string]string {
	merged := map[string]string{}
	maps.Copy(merged, values)
	maps.Copy(merged, wanted)
	return merged
}

// isSameText reports whether two texts contain the same documents. Another version of
// this program may have formatted them differently.
func isSameText(a, b string) bool {
	if a == b {
		return true
	}
	left, err := manifest.Decode([]byte(a))
	if err != nil {
		return false
	}
	right, err := manifest.Decode([]byte(b))
	return err == nil && reflect.DeepEqual(left, right)
}
