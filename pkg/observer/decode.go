package observer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json" // reads integers as such
	"k8s.io/apimachinery/pkg/watch"
)

// decoder reads the events of one watch. Of an object it reads what somebody looks
// at: metadata without managedFields, spec, status, and other fields if they are
// observed. Only an object that differs is read as a whole.
type decoder struct {
	*words

	observers *Observers
	resource  schema.GroupVersionResource
}

// part is a field of an object or of an event, as it is written.
type part struct {
	name string
	text []byte
}

// event gives an event of a watch. An object that was added, modified or deleted has
// become a record. The event shares nothing with the text.
func (d *decoder) event(text []byte) (watch.Event, error) {
	var kind struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if parts, err := read(d.words, text, (*parser).parts); err != nil {
		if err := utiljson.Unmarshal(text, &kind); err != nil {
			return watch.Event{}, fmt.Errorf("decode an event of %s: %w", d.resource, err)
		}
	} else {
		for _, part := range parts {
			switch part.name {
			case "type":
				if err := json.Unmarshal(part.text, &kind.Type); err != nil {
					return watch.Event{}, fmt.Errorf("decode an event of %s: %w", d.resource, err)
				}
			case "object":
				kind.Object = part.text
			}
		}
	}
	object, err := d.objectOf(kind.Type, kind.Object)
	if err != nil {
		return watch.Event{}, fmt.Errorf("decode an event %q of %s: %w", kind.Type, d.resource, err)
	}
	return watch.Event{Type: kind.Type, Object: object}, nil
}

func (d *decoder) objectOf(kind watch.EventType, text []byte) (runtime.Object, error) {
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted:
		return d.object(text)
	case watch.Bookmark:
		bookmark := &metav1.PartialObjectMetadata{}
		return bookmark, json.Unmarshal(text, bookmark)
	case watch.Error:
		status := &metav1.Status{}
		return status, json.Unmarshal(text, status)
	}
	return nil, errText
}

// object looks at an object.
func (d *decoder) object(text []byte) (*record, error) {
	whole := sync.OnceValue(func() Whole { return bytes.Clone(text) })
	parts, err := read(d.words, text, (*parser).parts)
	if err == nil {
		var live map[string]any
		if live, err = d.glance(parts); err == nil {
			seen := d.observers.sight(d.resource, live)
			if err = d.complete(seen, parts); err == nil {
				seen.fingerprint = d.fingerprint(seen, parts)
				return d.observers.lookAt(seen, whole), nil
			}
		}
	}
	live, err := d.all(text)
	if err != nil {
		return nil, err
	}
	return d.observers.lookAt(d.observers.sight(d.resource, live), whole), nil
}

// all reads all of an object.
func (w *words) all(text []byte) (map[string]any, error) {
	live, err := read(w, text, (*parser).fields)
	if err == nil {
		return live, nil
	}
	live = nil
	if err := utiljson.Unmarshal(text, &live); err != nil {
		return nil, err
	}
	return live, nil
}

// glance reads what is always looked at.
func (d *decoder) glance(parts []part) (map[string]any, error) {
	live := make(map[string]any, len(parts))
	for _, part := range parts {
		of := (*parser).value
		switch {
		case part.name == "metadata":
			of = (*parser).metadata
		case part.name != "apiVersion" && part.name != "kind" && !d.observers.summarises(part.name):
			continue
		}
		value, err := read(d.words, part.text, of)
		if err != nil {
			return nil, err
		}
		live[part.name] = value
	}
	return live, nil
}

func (o *Observers) summarises(field string) bool {
	return o.Summarised == nil || slices.Contains(o.Summarised, field)
}

// complete reads what else is observed of an object.
func (d *decoder) complete(seen sight, parts []part) error {
	if seen.observes("metadata", managedFields) {
		return errText
	}
	for _, part := range parts {
		if _, known := seen.live.Object[part.name]; known || !seen.observes(part.name) {
			continue
		}
		value, err := d.last(parts, part.name)
		if err != nil {
			return err
		}
		seen.live.Object[part.name] = value
	}
	return nil
}

// last reads the field that counts, if there are several of one name.
func (d *decoder) last(parts []part, name string) (value any, err error) {
	for _, part := range parts {
		if part.name != name {
			continue
		}
		if value, err = read(d.words, part.text, (*parser).value); err != nil {
			return nil, err
		}
	}
	return value, nil
}

const managedFields = "managedFields"

// parts passes over the fields of an object.
func (p *parser) parts() ([]part, error) {
	const usual = 8
	parts := make([]part, 0, usual)
	err := p.object(func(name string) error {
		text, err := p.skip()
		parts = append(parts, part{name, text})
		return err
	})
	return parts, err
}

// metadata reads metadata without managedFields, which are most of it.
func (p *parser) metadata() (any, error) {
	if p.peek() != '{' {
		return p.value()
	}
	fields := map[string]any{}
	err := p.object(func(name string) error {
		if name == managedFields {
			_, err := p.skip()
			return err
		}
		value, err := p.value()
		fields[name] = value
		return err
	})
	return fields, err
}

// sight is an object that is looked at, with whoever wants to know.
type sight struct {
	resource schema.GroupVersionResource
	// live has what somebody looks at, at least.
	live     *unstructured.Unstructured
	watchers []watcher
	// fingerprint is that of what anybody observes, 0 where the text is not at hand.
	fingerprint fingerprint
}

// watcher is who observes an object, and what of it, with what it saw last.
type watcher struct {
	owner  Owner
	target Target
	last   Observation
}

// sight finds who observes an object.
func (o *Observers) sight(resource schema.GroupVersionResource, object map[string]any) sight {
	seen := sight{resource: resource, live: &unstructured.Unstructured{Object: object}}
	at := key{resource, seen.live.GetNamespace(), seen.live.GetName()}
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, v := range o.watched[at] {
		seen.watchers = append(seen.watchers, watcher{v.owner, v.target, v.last})
	}
	return seen
}

// observes tells if anybody observes the field, or a part of it.
func (s sight) observes(path ...string) bool {
	for i := range s.watchers {
		if s.watchers[i].target.Marked.Observes(path...) {
			return true
		}
	}
	return false
}
