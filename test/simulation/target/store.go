package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// keptEvents is how many events of a kind a watch may be behind.
const keptEvents = 256

// key is where an object is.
type key struct {
	kind
	types.NamespacedName
}

// object is an object as it is stored. It is never changed, only replaced.
type object struct {
	types.NamespacedName

	uid     types.UID
	version uint64
	labels  labels.Set
	text    json.RawMessage
}

// event is the change of an object; without the one it came, without the other it
// went.
type event struct {
	version       uint64
	before, after *object
}

// store has the objects, and of each kind the last events.
type store struct {
	mu      sync.Mutex
	version uint64
	kinds   map[kind]*stored
}

// stored is what is stored of a kind.
type stored struct {
	objects map[types.NamespacedName]*object
	events  []event
	// forgotten is the version of the last event that is not kept any more.
	forgotten uint64
	// changed is closed at the next event.
	changed chan struct{}
}

func newStore() *store {
	s := &store{version: 1, kinds: map[kind]*stored{}}
	for _, k := range kinds() {
		s.kinds[k] = &stored{objects: map[types.NamespacedName]*object{}, changed: make(chan struct{})}
	}
	return s
}

// get gives an object, nil if there is none.
func (s *store) get(at key) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[at.kind].objects[at.NamespacedName]
}

// list gives the objects of a kind, in the order of their names, and the version
// as of which they are all.
func (s *store) list(k kind) (objects []*object, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects = slices.SortedFunc(maps.Values(s.kinds[k].objects), func(a, b *object) int {
		return strings.Compare(a.String(), b.String())
	})
	return objects, s.version
}

// since gives the events of a kind after a version, and what is closed when there
// is another. It is too late if some of them are not kept any more.
func (s *store) since(k kind, version uint64) (events []event, changed <-chan struct{}, tooLate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.kinds[k]
	first, _ := slices.BinarySearchFunc(of.events, version+1, func(e event, wanted uint64) int { return cmp.Compare(e.version, wanted) })
	return slices.Clone(of.events[first:]), of.changed, version < of.forgotten
}

// change replaces an object by what renew gives of the present one: an object,
// or nil to delete it. Each is nil if there is none. An object that does not
// change gets no new version, and nobody hears of it.
func (s *store) change(at key, renew func(before *object) (map[string]any, error)) (after *object, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.kinds[at.kind].objects[at.NamespacedName]
	made, err := renew(before)
	if err != nil {
		return nil, err
	}
	if made == nil {
		s.keepLocked(at, before, nil)
		return nil, nil
	}
	if before != nil {
		if same, err := encode(made, before.version); err != nil || string(same) == string(before.text) {
			return before, err
		}
	}
	content := unstructured.Unstructured{Object: made}
	text, err := encode(made, s.version+1)
	if err != nil {
		return nil, err
	}
	after = &object{NamespacedName: at.NamespacedName, uid: content.GetUID(), labels: content.GetLabels(), text: text}
	s.keepLocked(at, before, after)
	return after, nil
}

// keepLocked stores an object in the place of another, and tells of it.
func (s *store) keepLocked(at key, before, after *object) {
	s.version++
	of := s.kinds[at.kind]
	if after == nil {
		delete(of.objects, at.NamespacedName)
	} else {
		after.version = s.version
		of.objects[at.NamespacedName] = after
	}
	of.events = append(of.events, event{s.version, before, after})
	if len(of.events) > keptEvents {
		of.forgotten, of.events = of.events[0].version, slices.Delete(of.events, 0, 1)
	}
	close(of.changed)
	of.changed = make(chan struct{})
}

// bytes is how much all objects are.
func (s *store) bytes() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.kinds {
		for _, o := range of.objects {
			bytes += int64(len(o.text))
		}
	}
	return bytes
}

// encode gives the text of an object in a version.
func encode(content map[string]any, version uint64) (json.RawMessage, error) {
	(&unstructured.Unstructured{Object: content}).SetResourceVersion(strconv.FormatUint(version, 10))
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode an object: %w", err)
	}
	return text, nil
}

// decode gives the content of an object, which is the caller's own.
func (o *object) decode() (map[string]any, error) {
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(o.text); err != nil {
		return nil, fmt.Errorf("decode %s: %w", o.NamespacedName, err)
	}
	return content.Object, nil
}

// in gives the text of an object as if it were of that version.
func (o *object) in(version uint64) (json.RawMessage, error) {
	content, err := o.decode()
	if err != nil {
		return nil, err
	}
	return encode(content, version)
}
