package ha

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	want  = "blue" // in the Applications
	drift = "evil" // written by another client
)

// shelf is a namespace with Applications of many small objects.
type shelf struct {
	namespace string
	objects   []string
}

// newShelf creates the Applications and waits until all of them run.
func newShelf(t *testing.T, apps, each int) *shelf {
	t.Helper()
	s := &shelf{namespace: hub.NewNamespaceOfApps(t, "ha")}
	for app := range apps {
		var manifest strings.Builder
		for n := range each {
			name := fmt.Sprintf("object-%d-%d", app, n)
			s.objects = append(s.objects, name)
			fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {color: %s}\n", name, want)
		}
		hub.CreateApp(t, kit.Application(s.namespace, fmt.Sprintf("app-%d", app), manifest.String()))
	}
	kit.Eventually(t, func() string {
		list, err := hub.CoreV1().ConfigMaps(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: application.StateLabel + "=RUNNING"})
		kit.Must(t, err)
		if len(list.Items) == apps {
			return ""
		}
		return fmt.Sprintf("%d of %d Applications run", len(list.Items), apps)
	})
	return s
}

// disturb changes one object as another client.
func (s *shelf) disturb(ctx context.Context, name string) error {
	return hub.TryChange(ctx, kit.ConfigMaps, s.namespace, name, `{"data": {"color": "`+drift+`"}}`)
}

// disturbAll changes all objects, as fast as possible.
func (s *shelf) disturbAll(t *testing.T) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, name := range s.objects {
		group.Go(func() error { return s.disturb(t.Context(), name) })
	}
	kit.Must(t, group.Wait())
}

// disturbEach changes one object after the other, with pauses.
func (s *shelf) disturbEach(ctx context.Context, pause time.Duration) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for _, name := range s.objects {
		if err := s.disturb(ctx, name); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// journal has all stored versions of the objects since its begin, in order.
type journal struct {
	mu       sync.Mutex
	versions map[string][]string
	repaired int
	enough   int
	middle   chan struct{} // closed when enough objects are repaired
}

// begin begins a journal.
func (s *shelf) begin(t *testing.T, enough int) *journal {
	t.Helper()
	configMaps := hub.CoreV1().ConfigMaps(s.namespace)
	list, err := configMaps.List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	events, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	kit.Must(t, err)
	t.Cleanup(events.Stop)
	j := &journal{versions: map[string][]string{}, enough: enough, middle: make(chan struct{})}
	go func() {
		for event := range events.ResultChan() {
			if cm, ok := event.Object.(*corev1.ConfigMap); ok && slices.Contains(s.objects, cm.Name) {
				j.add(event.Type, cm)
			}
		}
	}()
	return j
}

func (j *journal) add(event watch.EventType, object *corev1.ConfigMap) {
	j.mu.Lock()
	defer j.mu.Unlock()
	version := object.Data["color"]
	if event != watch.Modified {
		version = string(event) + " " + version
	}
	j.versions[object.Name] = append(j.versions[object.Name], version)
	if version != want {
		return
	}
	if j.repaired++; j.repaired == j.enough {
		close(j.middle)
	}
}

// awaitMiddle waits until enough objects are repaired.
func (j *journal) awaitMiddle(t *testing.T) {
	t.Helper()
	select {
	case <-j.middle:
	case <-time.After(kit.Timeout):
		t.Fatalf("after %s there are not %d repairs", kit.Timeout, j.enough)
	}
}

// complaint returns the objects that were not disturbed once and then repaired once,
// and nothing else.
func (j *journal) complaint(objects []string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var wrong []string
	for _, name := range objects {
		if !slices.Equal(j.versions[name], []string{drift, want}) {
			wrong = append(wrong, fmt.Sprintf("%s %v", name, j.versions[name]))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d objects were not disturbed once and then repaired once: %s", len(wrong), len(objects), strings.Join(wrong, "; "))
}
