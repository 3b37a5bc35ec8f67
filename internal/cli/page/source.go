package page

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

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// source reads what the page shows, as the user.
type source struct {
	*env.Environment

	scope apps.Scope
	// clients has the clients of clusters, by their names: making them reads the discovery of the server.
	connecting sync.Mutex
	clients    map[string]env.Objects
	// last is the Application that was read last: most requests are about the same one.
	mu   sync.Mutex
	last plannedItem
}

// plannedItem is an Application with its desired objects, which takes most of the time of a request.
type plannedItem struct {
	apps.Item

	expected []plan.Expected
}

// planned reads an Application, and computes its desired objects if it has changed.
func (s *source) planned(ctx context.Context, name types.NamespacedName) (plannedItem, error) {
	i, err := apps.GetIn(ctx, s.Environment, name.Namespace, name.Name)
	if err = errors.Join(err, i.Err); err != nil {
		return plannedItem{}, err
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.App != nil && last.Stored.UID == i.Stored.UID && last.Stored.ResourceVersion == i.Stored.ResourceVersion {
		return last, nil
	}
	expected, err := apps.Expect(i.App, env.TypesOn(s.ObjectsOf, i.App.Cluster))
	if err != nil {
		return plannedItem{}, err
	}
	now := plannedItem{i, expected}
	s.mu.Lock()
	s.last = now
	s.mu.Unlock()
	return now, nil
}

func newSource(e *env.Environment, s apps.Scope) *source {
	return &source{Environment: e, scope: s, clients: map[string]env.Objects{}}
}

// ObjectsOf connects to a cluster once.
func (s *source) ObjectsOf(cluster string) (env.Objects, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if known, ok := s.clients[cluster]; ok {
		return known, nil
	}
	made, err := s.Environment.ObjectsOf(cluster)
	if err == nil {
		made.Kinds = &renewedKinds{RESTMapper: made.Kinds, now: s.Now}
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
	item     apps.Item
	expected plan.Expected
	live     map[string]any
}

// see reads an Application and one of its objects.
func (s *source) see(ctx context.Context, ref ui.Ref) (seen, error) {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return seen{}, err
	}
	at, err := indexOf(i.App, i.expected, ref.Object)
	if err != nil {
		return seen{}, fmt.Errorf("%w: it is about to leave, or is the Secret of a hook", err)
	}
	clients, err := s.ObjectsOf(i.App.Cluster)
	if err != nil {
		return seen{}, err
	}
	live, err := clients.Live(ctx, lens.Placed(i.App, i.expected[at].ID))
	return seen{i.Item, i.expected[at], live}, err
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
func (s *source) Object(ctx context.Context, ref ui.Ref, private bool) (ui.Object, error) {
	found, err := s.see(ctx, ref)
	if err != nil {
		return ui.Object{}, err
	}
	shown := ui.Object{Title: lens.Placed(found.item.App, found.expected.ID).String(), Missing: found.live == nil}
	if shown.Missing {
		return shown, nil
	}
	shown.Version = (&unstructured.Unstructured{Object: found.live}).GetResourceVersion()
	shown.Lines, err = lens.Lines(found.item.App, found.expected, found.live, private)
	isPrivate := func(line lens.Line) bool {
		return line.Look == lens.Private || strings.Contains(line.Desired, lens.Hidden)
	}
	shown.HasPrivate = found.expected.ID.Kind != "Secret" && slices.ContainsFunc(shown.Lines, isPrivate)
	return shown, err
}

// Watch implements [ui.Source].
func (s *source) Watch(ctx context.Context, ref ui.Ref, version string, changed func()) error {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return err
	}
	id := lens.Placed(i.App, ref.Object)
	clients, err := s.ObjectsOf(i.App.Cluster)
	if err != nil {
		return err
	}
	mapping, err := clients.Kinds.RESTMapping(id.GroupVersionKind().GroupKind(), id.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	watcher, err := clients.At(mapping, id.Namespace).Watch(ctx, metav1.ListOptions{
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
func (s *source) Explain(ctx context.Context, ref ui.Ref, place schema.Path) (string, error) {
	i, err := s.planned(ctx, ref.Application)
	if err != nil {
		return "", err
	}
	at, err := indexOf(i.App, i.expected, ref.Object)
	if err != nil {
		return "", err
	}
	return view.Explain(i.App, i.expected, place)[at].Text(), nil
}

var _ ui.Source = (*source)(nil)

// nameOf is the identity of an Application.
func nameOf(i apps.Item) types.NamespacedName {
	return types.NamespacedName{Namespace: i.Stored.Namespace, Name: i.Stored.Name}
}
