package application

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Published is a document of an Application that people read, and that is most of what
// its ConfigMap holds: what is stored is decoded only if somebody asks, and stays as it is
// as long as nobody has another one written. The zero value is that there is none.
type Published struct {
	// decode gives what is stored, as text or compressed; nil: objects are what there is.
	decode  func() ([]map[string]any, error)
	objects []map[string]any
}

// Publishing gives the document that has these objects; nil: that there is none.
func Publishing(objects []map[string]any) Published { return Published{objects: objects} }

// stored gives the document as a ConfigMap has it.
func stored(cm *corev1.ConfigMap, key string) Published {
	text, isText := cm.Data[key]
	compressed, isCompressed := cm.BinaryData[key]
	if !isText && !isCompressed {
		return Published{}
	}
	// Not the ConfigMap itself, of which the rest need not be kept.
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

// Stored takes note that an Application is stored as the ConfigMap has it.
func (a *Application) Stored(cm *corev1.ConfigMap) {
	a.Version = cm.ResourceVersion
	if !a.IsCurrent() {
		return
	}
	for key, document := range map[string]*Published{LastAppliedKey: &a.LastApplied, LastObservedKey: &a.LastObserved} {
		if now := stored(cm, key); now.decode != nil { // what there was no room for is known all the same
			*document = now
		}
	}
}

// Objects are the objects of the document, which nobody may change; none, if it cannot be
// read.
func (p Published) Objects() []map[string]any {
	objects, _ := p.Decode()
	return objects
}

// Decode gives the objects, or why what is stored cannot be read.
func (p Published) Decode() ([]map[string]any, error) {
	if p.decode == nil {
		return p.objects, nil
	}
	return p.decode()
}

// IsStored tells if the document is what the ConfigMap has that the Application was read
// from, or stored in last.
func (p Published) IsStored() bool { return p.decode != nil }

// Equal tells if both have the same objects.
func (p Published) Equal(other Published) bool {
	return reflect.DeepEqual(p.Objects(), other.Objects())
}
