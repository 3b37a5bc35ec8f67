package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A scenario is the life of an Application: the user's actions, one sentence after the
// other. After each, everything must become as the sentences so far say. An object is
// named by its kind and the one value that the tests change, as in "service 80".
type scenario struct {
	name string
	life []sentence
	// meanwhile is what the user does if the agent is stopped after the last sentence.
	meanwhile sentence
	// two: the scenario needs two clusters.
	two bool
}

// sentence is an action of the user.
type sentence func(context.Context, *app) error

var scenarios = []scenario{
	{
		name: "create", life: []sentence{creates("configmap one", "service 80", "deployment main:1")},
		meanwhile: says("service 81"),
	},
	{
		name: "update", life: []sentence{
			creates("configmap one", "service 80", "deployment main:1"), edits("service"),
			says("configmap two", "service 81", "deployment main:2"),
		},
		meanwhile: says("configmap three", "deployment main:1"),
	},
	{
		name: "shrink", life: []sentence{
			creates("configmap one", "service 80", "deployment main:1"), says("service 80"),
		},
		meanwhile: says("configmap two", "service 80"),
	},
	{
		name: "delete", life: []sentence{creates("configmap one", "service 80", "deployment main:1"), deletes()},
		meanwhile: loses("service"),
	},
	{
		name: "retarget", two: true, life: []sentence{creates("configmap one", "service 80", "deployment main:1"), moves()},
		meanwhile: moves(),
	},
	{
		name: "adopt-refuse", life: []sentence{
			finds("service 70"), creates("configmap one", "service 80", "deployment main:1"), adopts(),
		},
		meanwhile: says("configmap two", "service 81"),
	},
	{
		name: "late definition", life: []sentence{creates("song one", "configmap one", "service 80"), defines()},
		meanwhile: says("configmap one"),
	},
	{
		name: "two claim one", life: []sentence{
			creates("configmap one", "service 80"), isRivalled("service 81", "deployment main:1"), says("configmap two"),
		},
		meanwhile: deletes(),
	},
}

// troubled is the life of an Application while another client changes one object and
// deletes another.
var troubled = scenario{
	name: "troubled", life: []sentence{
		creates("configmap one", "service 80", "deployment main:1"), drifts("service 90"), loses("deployment"),
		says("service 81", "deployment main:2"), deletes(),
	},
	meanwhile: loses("service"),
}

// named returns the scenario of a name.
func named(name string) scenario {
	at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	return scenarios[at]
}

// creates: the user creates the Application with these objects.
func creates(objects ...string) sentence {
	return func(ctx context.Context, a *app) error {
		a.say(objects)
		return a.create(ctx, a.manifest())
	}
}

// says: these are the Application's objects from now on.
func says(objects ...string) sentence {
	return func(ctx context.Context, a *app) error {
		a.say(objects)
		if _, claimed := a.spec["service"]; !claimed {
			a.yields()
		}
		return a.update(ctx, a.manifest())
	}
}

// deletes: the user deletes the Application.
func deletes() sentence {
	return func(ctx context.Context, a *app) error {
		a.ended, a.spec = true, map[string]object{}
		a.yields()
		return a.delete(ctx)
	}
}

// moves: the user moves the Application to the lane's other cluster.
func moves() sentence {
	return func(ctx context.Context, a *app) error {
		if a.cluster == a.lane.name {
			a.cluster = a.lane.name + second
		} else {
			a.cluster = a.lane.name
		}
		patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, application.ClusterAnnotation, a.cluster)
		return change(ctx, kit.ConfigMaps, a.NamespacedName, patch)
	}
}

// finds: another client already has an object of this name.
func finds(said string) sentence {
	return func(ctx context.Context, a *app) error {
		kind, theirs := a.object(said)
		a.foreign[kind], a.refused[kind] = true, true
		_, err := env.Dynamic.Resource(a.resource(kind)).Namespace(a.Namespace).Create(ctx,
			&unstructured.Unstructured{Object: theirs}, metav1.CreateOptions{FieldManager: "somebody"})
		return err
	}
}

// adopts: the user lets the Application adopt the other client's object.
func adopts() sentence {
	return func(ctx context.Context, a *app) error {
		a.refused = map[string]bool{}
		return change(ctx, kit.ConfigMaps, a.NamespacedName, fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, application.AdoptAnnotation))
	}
}

// defines: the kind of the Application's song is defined.
func defines() sentence {
	return func(ctx context.Context, a *app) error {
		a.refused = map[string]bool{}
		a.lane.songs = append(a.lane.songs, a.song())
		return a.song().define(ctx)
	}
}

// isRivalled: another Application claims these objects. This one has the first of them,
// unless its agent was killed before it created the object.
func isRivalled(objects ...string) sentence {
	return func(ctx context.Context, a *app) error {
		a.rival = a.lane.appOf(a.Name + "-rival")
		a.rival.prefix = a.prefix
		a.rival.say(objects)
		kind, _ := a.object(objects[0])
		live, err := get(ctx, a.resource(kind), types.NamespacedName{Namespace: a.home(), Name: a.named(kind).Name})
		if err != nil {
			return err
		}
		if live == nil {
			a.contested = kind
		} else {
			a.rival.refused[kind] = true
		}
		return a.rival.create(ctx, a.rival.manifest())
	}
}

// drifts: another client changes an object.
func drifts(said string) sentence {
	return func(ctx context.Context, a *app) error {
		kind, theirs := a.object(said)
		return a.patchObject(ctx, kind, object{"spec": theirs["spec"], "data": theirs["data"]})
	}
}

// edits: another client sets a field that no manifest has.
func edits(kind string) sentence {
	return func(ctx context.Context, a *app) error {
		return a.patchObject(ctx, kind, object{"metadata": object{"annotations": object{"somebody/note": "keep me"}}, "spec": object{"sessionAffinity": "ClientIP"}})
	}
}

// loses: another client deletes an object, if it exists.
func loses(kind string) sentence {
	return func(ctx context.Context, a *app) error {
		name := a.named(kind)
		err := env.Dynamic.Resource(a.resource(kind)).Namespace(a.home()).Delete(ctx, name.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// say changes the Application's objects to these.
func (a *app) say(objects []string) {
	a.said, a.spec = objects, map[string]object{}
	for _, said := range objects {
		kind, wanted := a.object(said)
		switch a.spec[kind] = wanted; {
		case kind == "song", said == refusedService:
			a.refused[kind] = true // until its kind is defined, or another spec replaces it
		case !a.foreign[kind]:
			delete(a.refused, kind)
		}
	}
	maps.DeleteFunc(a.refused, func(kind string, _ bool) bool { return a.spec[kind] == nil && !a.foreign[kind] })
}

// isRefused reports whether the Application wants an object that it cannot have.
func (a *app) isRefused() bool {
	for kind := range a.refused {
		if a.spec[kind] != nil {
			return true
		}
	}
	return false
}

func (a *app) manifest() []object {
	var objects []object
	for _, kind := range slices.Sorted(maps.Keys(a.spec)) {
		objects = append(objects, a.spec[kind])
	}
	return objects
}

// object returns the kind and the object that the words of a sentence name.
func (a *app) object(said string) (kind string, made object) {
	kind, value, _ := strings.Cut(said, " ")
	switch kind {
	case "configmap":
		return kind, a.configMap(value)
	case "service":
		port, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			panic(err) // a mistake in the scenario
		}
		return kind, a.service(port)
	case "deployment":
		return kind, a.deployment(value)
	}
	return kind, object{
		"apiVersion": songsGroup + "/v1", "kind": a.song().kind,
		"metadata": object{"name": a.named("song").Name}, "spec": object{"title": value},
	}
}

// song returns the definition of the Application's own kind.
func (a *app) song() definition {
	kind := "Song" + strings.ReplaceAll(a.Namespace+a.Name, "-", "")
	return definition{group: songsGroup, kind: kind, plural: strings.ToLower(kind) + "s"}
}

func (a *app) resource(kind string) gvr.GroupVersionResource {
	if resource, ok := resources[kind]; ok {
		return resource
	}
	return a.song().resource()
}

// home returns the namespace where the objects are to be.
func (a *app) home() string { return a.lane.place(a.cluster) }

func (a *app) patchObject(ctx context.Context, kind string, patch object) error {
	maps.DeleteFunc(patch, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	err = change(ctx, a.resource(kind), types.NamespacedName{Namespace: a.home(), Name: a.named(kind).Name}, string(text))
	if apierrors.IsNotFound(err) {
		return nil // not created yet: no client can change it
	}
	return err
}

// stands returns an error unless everything is as the user last asked for.
func (a *app) stands(ctx context.Context) error {
	if kind := a.replaced.Swap(nil); kind != nil {
		a.foreign[*kind], a.refused[*kind] = true, true
	}
	if err := errors.Join(a.settleContest(ctx), a.hasObjects(ctx)); err != nil {
		return err
	}
	if err := a.isSaidToBe(ctx); err != nil || a.rival == nil {
		return err
	}
	return a.rival.stands(ctx)
}

// yields: the rival, if there is one, may now have the contested object.
func (a *app) yields() {
	if a.contested = ""; a.rival != nil {
		a.rival.refused = map[string]bool{}
	}
}

// settleContest records which Application was first.
func (a *app) settleContest(ctx context.Context) error {
	if a.contested == "" {
		return nil
	}
	live, err := get(ctx, a.resource(a.contested), types.NamespacedName{Namespace: a.home(), Name: a.named(a.contested).Name})
	if live == nil || err != nil {
		return err
	}
	late := a
	if owner, _ := application.OwnerOf(live.Object); owner == a.NamespacedName {
		late = a.rival
	}
	if late.spec[a.contested] != nil {
		late.refused[a.contested] = true
	}
	a.contested = ""
	return nil
}

func (a *app) hasObjects(ctx context.Context) error {
	for _, place := range a.lane.places() {
		for _, kind := range []string{"configmap", "service", "deployment"} {
			wanted := a.spec[kind]
			if place != a.home() {
				wanted = nil
			}
			left := place == a.home() && wanted == nil
			if a.isOthers(kind) || left && a.isRefused() { // what left the spec stays as long as an object cannot be created
				continue
			}
			live, err := get(ctx, a.resource(kind), types.NamespacedName{Namespace: place, Name: a.named(kind).Name})
			if err != nil {
				return err
			}
			if err := compare(place+"/"+a.named(kind).Name, wanted, live); err != nil {
				return err
			}
		}
	}
	if song := a.spec["song"]; song != nil && !a.refused["song"] {
		live, err := get(ctx, a.resource("song"), types.NamespacedName{Namespace: a.home(), Name: a.named("song").Name})
		return errors.Join(err, compare("the song of "+a.Name, song, live))
	}
	return nil
}

// isOthers reports whether an object does not belong to the Application alone.
func (a *app) isOthers(kind string) bool {
	if a.refused[kind] || a.foreign[kind] && a.spec[kind] == nil {
		return true
	}
	if _, claims := a.spec[kind]; claims {
		return false
	}
	another := a.rival
	if another == nil && a.prefix != a.Name {
		return true // the other Application may own it
	}
	return another != nil && another.spec[kind] != nil
}

// isSaidToBe returns an error unless the Application's status is about the current
// spec, and reports success, or the reason why not. It also waits until no other
// Application has its objects. It only decides when to continue, and proves nothing.
func (a *app) isSaidToBe(ctx context.Context) error {
	read, err := a.read(ctx)
	switch {
	case err != nil:
		return err
	case a.uid == "" || a.ended && read == nil: // not created yet, or deleted
		return nil
	case a.ended:
		return fmt.Errorf("the Application %s is still there", a)
	case read == nil:
		return fmt.Errorf("there is no Application %s", a)
	}
	said := meta.FindStatusCondition(read.Status.Conditions, application.ReadyCondition)
	want := metav1.ConditionTrue
	if a.isRefused() {
		want = metav1.ConditionFalse
	}
	switch {
	case read.Status.ObservedSpec != read.Spec.Digest() || read.Status.ClusterName() != a.cluster:
		return fmt.Errorf("the status of %s speaks of something else", a)
	case said == nil || said.Status != want:
		return fmt.Errorf("the status of %s says %v", a, said)
	case len(read.OtherHolders) > 0 || meta.FindStatusCondition(read.Status.Conditions, application.MigratingCondition) != nil:
		return fmt.Errorf("%s is still on its way", a)
	}
	return nil
}

// refusedService has an invalid port.
const refusedService = "service 70000"
