package habitat

import (
	"encoding/json"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	// applicationPrefix and the name of a Habitat are the name of its Application.
	applicationPrefix = "habitat-"
	// peersApplication is the Application of the peer file, which all Habitats of a
	// namespace share.
	peersApplication = applicationPrefix + "peers"

	// An Application is generated from one Habitat, or from all of a namespace.
	generatedFromOne = habitat.Kind + "/"
	generatedFromAll = "Habitats"
)

// applicationOf returns the Application of a Habitat. Its observer schema is the
// default: it observes every generated field, and no other.
func (s *shared) applicationOf(h habitat.Habitat) (*corev1.ConfigMap, error) {
	workload := h.Workload(s.filesImage)
	fields, err := schema.Default(workload)
	if err != nil {
		return nil, err
	}
	owner := ownerOf(h.Name, h.UID)
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	cm, err := s.newApplication(h.Namespace, applicationPrefix+h.Name, generatedFromOne+h.Name, workload, fields.Document(), owner)
	if err != nil {
		return nil, err
	}
	cm.Labels[habitat.NameLabel] = h.Name
	return cm, nil
}

func ownerOf(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: habitat.APIVersion, Kind: habitat.Kind, Name: name, UID: uid}
}

// peersApplicationOf returns the Application of the peer file. The garbage collector
// deletes it with the last of its owners.
func (s *shared) peersApplicationOf(namespace string, owners []metav1.OwnerReference) (*corev1.ConfigMap, error) {
	file, fields := habitat.PeerConfigMap(namespace)
	return s.newApplication(namespace, peersApplication, generatedFromAll, file, fields, owners...)
}

func (s *shared) newApplication(namespace, name, from string, resource, observed map[string]any, owners ...metav1.OwnerReference) (*corev1.ConfigMap, error) {
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
			Namespace: namespace, Name: name, Labels: map[string]string{habitat.Label: "true"}, Annotations: annotations, OwnerReferences: owners,
		},
		Data: map[string]string{application.ManifestKey: text, application.ObserverSchemaKey: fields},
	}, nil
}

// textOf writes a document as YAML, which is easier to read, or as JSON if YAML would
// be read as another document: YAML has no control characters, and types some texts.
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
