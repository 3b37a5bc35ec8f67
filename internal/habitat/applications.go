package habitat

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	// applicationPrefix stands before the name of a Habitat in that of its Application.
	applicationPrefix = "habitat-"
	// peersApplication is the Application of the peer file, which all Habitats of a
	// namespace share.
	peersApplication = applicationPrefix + "peers"

	// What Applications are generated from: one Habitat, or all of a namespace.
	generatedFromOne = habitat.Kind + "/"
	generatedFromAll = "Habitats"
)

// applicationOf makes the Application of a Habitat. Its observer schema is the
// default one: every generated field is observed, and nothing else.
func (s *shared) applicationOf(h habitat.Habitat) (*corev1.ConfigMap, error) {
	workload := h.Workload(s.filesImage)
	fields, err := schema.Default(workload)
	if err != nil {
		return nil, err
	}
	cm, err := s.newApplication(h.Namespace, applicationPrefix+h.Name, generatedFromOne+h.Name, workload, fields.Document())
	if err != nil {
		return nil, err
	}
	cm.Labels[habitat.NameLabel] = h.Name
	owner := ownerOf(h.Name, h.UID)
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	cm.OwnerReferences = []metav1.OwnerReference{owner}
	return cm, nil
}

// peersApplicationOf makes the Application of a namespace's peer file. It goes with
// the last of its owners.
func (s *shared) peersApplicationOf(namespace string, owners []metav1.OwnerReference) (*corev1.ConfigMap, error) {
	file, fields := habitat.PeerConfigMap(namespace)
	cm, err := s.newApplication(namespace, peersApplication, generatedFromAll, file, fields)
	if err != nil {
		return nil, err
	}
	cm.OwnerReferences = owners
	return cm, nil
}

func (s *shared) newApplication(namespace, name, from string, resource, observed map[string]any) (*corev1.ConfigMap, error) {
	text, err := textOf(resource)
	if err != nil {
		return nil, err
	}
	fields, err := textOf(observed)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{application.FormatAnnotation: application.Format, application.GeneratedFromAnnotation: from}
	if s.cluster != application.LocalCluster {
		annotations[application.ClusterAnnotation] = s.cluster
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{habitat.Label: "true"}, Annotations: annotations,
		},
		Data: map[string]string{application.ManifestKey: text, application.ObserverSchemaKey: fields},
	}, nil
}

// textOf writes a document as YAML, for people to read, and as JSON if that does not
// say the same: YAML has no control characters, and reads some texts as something else.
func textOf(document map[string]any) (string, error) {
	if text, err := yaml.Marshal(document); err == nil {
		read, err := manifest.Decode(text)
		if err == nil && len(read) == 1 && reflect.DeepEqual(read[0], any(document)) {
			return string(text), nil
		}
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return string(text), err
}

func ownerOf(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: habitat.APIVersion, Kind: habitat.Kind, Name: name, UID: uid}
}

// Why an Application cannot be written now.
var (
	// errTaken: the ConfigMap is somebody else's.
	errTaken = errors.New("it belongs to somebody else")
	// errGoing: that of before is still there. There is an event when it is gone.
	errGoing = errors.New("it is of before, and is being deleted")
)

// done is what became of a write.
type done string

const (
	nothing done = ""
	created done = "created"
	updated done = "updated"
)

// ensure brings an Application to what it is to be: the labels, annotations and
// owners that are wanted, and the spec. Everything else in it is the users' and the
// agents'. may gives an error if one that is there is not to be written.
func (s *shared) ensure(ctx context.Context, wanted *corev1.ConfigMap, may func(stored *corev1.ConfigMap) error) (*corev1.ConfigMap, done, error) {
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
		// The cache is behind, or does not see it, because it has lost its label.
		stored = &corev1.ConfigMap{}
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(wanted), stored); err != nil {
			return nil, nothing, err
		}
	}
	if err := may(stored); err != nil {
		return stored, nothing, err
	}
	after := stored.DeepCopy()
	if !bring(after, wanted) {
		return stored, nothing, nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, after, patch, client.FieldOwner(Name)); err != nil {
		return stored, nothing, err
	}
	return after, updated, nil
}

// stored reads an Application, nil if there is none.
func (s *shared) stored(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := s.client.Get(ctx, name, &cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &cm, err
}

// bring puts what is wanted into an Application, and tells if that changes anything.
func bring(cm, wanted *corev1.ConfigMap) bool {
	before := cm.DeepCopy()
	cm.Labels = with(cm.Labels, wanted.Labels)
	cm.Annotations = with(cm.Annotations, wanted.Annotations)
	if _, elsewhere := wanted.Annotations[application.ClusterAnnotation]; !elsewhere {
		delete(cm.Annotations, application.ClusterAnnotation) // its Pods would not find the others
	}
	if !reflect.DeepEqual(cm.OwnerReferences, wanted.OwnerReferences) {
		cm.OwnerReferences = wanted.OwnerReferences
	}
	maps.DeleteFunc(cm.Data, func(key, _ string) bool { _, ours := wanted.Data[key]; return application.IsSpecKey(key) && !ours })
	maps.DeleteFunc(cm.BinaryData, func(key string, _ []byte) bool { return application.IsSpecKey(key) })
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	for key, text := range wanted.Data {
		if !sameText(cm.Data[key], text) {
			cm.Data[key] = text
		}
	}
	return !reflect.DeepEqual(before, cm)
}

func with(values, wanted map[string]string) map[string]string {
	values = maps.Clone(values)
	if values == nil {
		values = map[string]string{}
	}
	maps.Copy(values, wanted)
	return values
}

// sameText tells if two texts have the same documents: one that another version of
// this program has written otherwise need not be written again.
func sameText(a, b string) bool {
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

// mine gives why a ConfigMap is not to be written as the Application of a Habitat.
func mine(h habitat.Habitat) func(*corev1.ConfigMap) error {
	return func(stored *corev1.ConfigMap) error {
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
}

// mineOfAll gives why a ConfigMap is not to be written as the Application of a
// namespace's peer file.
func mineOfAll(stored *corev1.ConfigMap) error {
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

// isHabitat tells if an owner is one, whatever the version of its API.
func isHabitat(owner metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return owner.Kind == habitat.Kind && group == habitat.Group
}
