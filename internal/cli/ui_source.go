package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// uiSource reads what the page shows, as the user.
type uiSource struct {
	*environment

	scope scope
	// clients has the clients of clusters, by their names: making them reads the discovery of the server.
	connecting sync.Mutex
	clients    map[string]objects
	// last is the Application that was read last: most requests are about the same one.
	mu   sync.Mutex
	last plannedItem
}

// plannedItem is an Application with its desired objects, which takes most of the time of a request.
type plannedItem struct {
	item

	expected []plan.Expected
}

// planned reads an Application, and computes its desired objects if it has changed.
func (s *uiSource) planned(ctx context.Context, name types.NamespacedName) (plannedItem, error) {
	i, err := getIn(ctx, s.environment, name.Namespace, name.Name)
	if err = errors.Join(err, i.err); err != nil {
		return plannedItem{}, err
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.app != nil && last.stored.UID == i.stored.UID && last.stored.ResourceVersion == i.stored.ResourceVersion {
		return last, nil
	}
	expected, err := expect(i.app, typesOn(s.objectsOf, i.app.Cluster))
	if err != nil {
		return plannedItem{}, err
	}
	now := plannedItem{i, expected}
	s.mu.Lock()
	s.last = now
	s.mu.Unlock()
	return now, nil
}

func newUISource(e *environment, s scope) *uiSource {
	return &uiSource{environment: e, scope: s, clients: map[string]objects{}}
}

// objectsOf connects to a cluster once.
func (s *uiSource) objectsOf(cluster string) (objects, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if known, ok := s.clients[cluster]; ok {
		return known, nil
	}
	made, err := s.environment.objectsOf(cluster)
	if err == nil {
		made.kinds = &renewedKinds{RESTMapper: made.kinds, now: s.now}
		s.clients[cluster] = made
	}
	return made, err
}

// renewedKinds asks the server again for a kind that it did not serve: the clients are used for hours, and
// the CustomResourceDefinition may be newer.
type renewedKinds struct {
	meta.RESTMapper

	now     func() time.Time
	mu      sync.Mutex
	renewed time.Time
}

// renewalInterval bounds how often discovery is read again, because that can be many requests.
const renewalInterval = 10 * time.Second

// RESTMapping implements [meta.RESTMapper].
func (k *renewedKinds) RESTMapping(kind apischema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := k.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) || !k.renew() {
		return mapping, err
	}
	return k.RESTMapper.RESTMapping(kind, versions...)
}

// renew forgets what the server serves, and reports whether it did so.
func (k *renewedKinds) renew() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if now.Sub(k.renewed) < renewalInterval {
		return false
	}
	k.renewed = now
	meta.MaybeResetRESTMapper(k.RESTMapper)
	return true
}

// seen is an object of an Application with what its cluster has.
type seen struct {
	item     item
	expected plan.Expected
	live     map[string]any
}

// see reads an Application and one of its objects.
func (s *uiSource) see(ctx context.Context, ref ui.Ref) (seen, error) {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return seen{}, err
	}
	at, err := indexOf(i.app, i.expected, ref.Object)
	if err != nil {
		return seen{}, fmt.Errorf("%w: it is about to leave, or is the Secret of a hook", err)
	}
	clients, err := s.objectsOf(i.app.Cluster)
	if err != nil {
		return seen{}, err
	}
	live, err := clients.live(ctx, lens.Placed(i.app, i.expected[at].ID))
	return seen{i.item, i.expected[at], live}, err
}

// indexOf returns the index of an object among the desired ones.
func indexOf(app *application.Application, expected []plan.Expected, object manifest.ID) (int, error) {
	at := slices.IndexFunc(expected, func(e plan.Expected) bool {
		return plan.IsSame(lens.Placed(app, e.ID), lens.Placed(app, object))
	})
	if at < 0 {
		return 0, fmt.Errorf("the Application %s does not want %s", app.NamespacedName, object)
	}
	return at, nil
}

// Object implements [ui.Source].
func (s *uiSource) Object(ctx context.Context, ref ui.Ref, private bool) (ui.Object, error) {
	found, err := s.see(ctx, ref)
	if err != nil {
		return ui.Object{}, err
	}
	shown := ui.Object{Title: lens.Placed(found.item.app, found.expected.ID).String(), Missing: found.live == nil}
	if shown.Missing {
		return shown, nil
	}
	shown.Version = (&unstructured.Unstructured{Object: found.live}).GetResourceVersion()
	shown.Lines, err = lens.Lines(found.item.app, found.expected, found.live, private)
	isPrivate := func(line lens.Line) bool {
		return line.Look == lens.Private || strings.Contains(line.Desired, lens.Hidden)
	}
	shown.HasPrivate = found.expected.ID.Kind != "Secret" && slices.ContainsFunc(shown.Lines, isPrivate)
	return shown, err
}

// Watch implements [ui.Source].
func (s *uiSource) Watch(ctx context.Context, ref ui.Ref, version string, changed func()) error {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return err
	}
	id := lens.Placed(i.app, ref.Object)
	clients, err := s.objectsOf(i.app.Cluster)
	if err != nil {
		return err
	}
	mapping, err := clients.kinds.RESTMapping(id.GroupVersionKind().GroupKind(), id.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	watcher, err := clients.at(mapping, id.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, id.Name).String(), ResourceVersion: version,
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	if version == "" {
		changed()
	}
	for range watcher.ResultChan() {
		changed()
	}
	return nil
}

// Explain implements [ui.Source].
func (s *uiSource) Explain(ctx context.Context, ref ui.Ref, place schema.Path) (string, error) {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return "", err
	}
	at, err := indexOf(i.app, i.expected, ref.Object)
	if err != nil {
		return "", err
	}
	return explanationsOf(i.app, i.expected, place)[at].text(), nil
}

var _ ui.Source = (*uiSource)(nil)

// nameOf is the identity of an Application.
func nameOf(i item) types.NamespacedName {
	return types.NamespacedName{Namespace: i.stored.Namespace, Name: i.stored.Name}
}
