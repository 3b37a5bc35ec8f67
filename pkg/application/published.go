package application

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Published is a document for people. Such documents are most of a ConfigMap. A stored one is
// decoded only on demand, and stays unchanged until another replaces it. The zero value is no
// document.
type Published struct {
	// decode returns the objects of a stored document, nil if the document is not stored.
	decode  func() ([]map[string]any, error)
	objects []map[string]any
}

// Publishing returns a document with these objects, and no document for nil.
func Publishing(objects []map[string]any) Published { return Published{objects: objects} }

// stored returns the document that a ConfigMap has.
func stored(cm *corev1.ConfigMap, key string) Published {
	text, isText := cm.Data[key]
	compressed, isCompressed := cm.BinaryData[key]
	if !isText && !isCompressed {
		return Published{}
	}
	// A separate ConfigMap, so that the other keys do not stay in memory.
	of := &corev1.ConfigMap{Data: map[string]string{key: text}}
	if isCompressed {
		of = &corev1.ConfigMap{BinaryData: map[string][]byte{key: compressed}}
	}
	return Published{decode: sync.OnceValues(func() ([]map[string]any, error) {
		var objects []map[string]any
		if err := decode(of, key, &objects); err != nil {
			return nil, err
		}
		return objects, nil
	})}
}

// Objects returns the objects of the document, which the caller must not change, nil if it cannot be read.
func (p Published) Objects() []map[string]any {
	objects, _ := p.Decode()
	return objects
}

// Decode returns the objects, or the error of an unreadable document.
func (p Published) Decode() ([]map[string]any, error) {
	if p.decode == nil {
		return p.objects, nil
	}
	return p.decode()
}

// IsStored reports whether the document is the one in the ConfigMap that the Application was read
// from, or stored in last.
func (p Published) IsStored() bool { return p.decode != nil }

// Equal reports whether both documents have the same objects.
func (p Published) Equal(other Published) bool {
	return reflect.DeepEqual(p.Objects(), other.Objects())
}
