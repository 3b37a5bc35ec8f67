package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

type object = map[string]any

// resources are those of the kinds that the Applications here have.
var resources = map[string]gvr.GroupVersionResource{"configmap": kit.ConfigMaps, "service": kit.Services, "deployment": kit.Deployments}

// app is an Application.
type app struct {
	types.NamespacedName

	cluster string
	uid     types.UID
	// removed counts the objects that the user has deleted, by their names.
	removed map[string]int
	// lane is where it is, and prefix what the names of its objects begin with.
	lane   *lane
	prefix string
	// said is what the user has said last, in words.
	said []string
	// spec are its objects, by kind, as the user has said last; refused are those of
	// them that it cannot have now. ended: the user has deleted it.
	spec    map[string]object
	refused map[string]bool
	ended   bool
	// rival is another Application that claims one of its objects, if there is one.
	rival *app
	// contested is the kind of the object that both claim and neither has had before; empty:
	// there is none.
	contested string
	// foreign tells of the objects of somebody else that have names of its own.
	foreign map[string]bool
	// replaced is the kind of the object that somebody else has put his own in the place
	// of, while nobody looked.
	replaced atomic.Pointer[string]
	// bystander tells that there are objects of somebody else beside it.
	bystander bool
}

// newApp gives the lane's next Application. Nothing is created.
func (l *lane) newApp() *app {
	l.apps++
	return l.appOf(fmt.Sprintf("app-%d", l.apps))
}

func (l *lane) appOf(name string) *app {
	return &app{
		NamespacedName: types.NamespacedName{Namespace: l.namespace, Name: name}, lane: l, prefix: name, cluster: l.name,
		removed: map[string]int{}, spec: map[string]object{}, refused: map[string]bool{}, foreign: map[string]bool{},
	}
}

// named is the name of the Application's object of a kind.
func (a *app) named(kind string) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.prefix + "-" + kind}
}

// owns tells if an object of that name is one of the Application's, or itself.
func (a *app) owns(name string) bool { return belongs(name, a.Name) }

func belongs(name, app string) bool { return name == app || strings.HasPrefix(name, app+"-") }

// The objects of an Application, each with the one value that the tests change.
func (a *app) configMap(value string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": a.named("configmap").Name}, "data": object{"key": value}}
}

func (a *app) service(port int64) object {
	return object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": a.named("service").Name},
		"spec": object{"selector": object{"app": a.Name}, "ports": []any{object{"port": port, "targetPort": port, "protocol": "TCP"}}},
	}
}

// deployment needs no Pods, and so no nodes.
func (a *app) deployment(image string) object {
	labels := object{"app": a.Name}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": a.named("deployment").Name},
		"spec": object{
			"replicas": int64(0), "selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec":     object{"containers": []any{object{"name": "main", "image": image}}},
			},
		},
	}
}

// create makes the Application, with these objects.
func (a *app) create(ctx context.Context, objects []object) error {
	text, err := manifestOf(objects)
	if err != nil {
		return err
	}
	cm := kit.Application(a.Namespace, a.Name, text, kit.On(a.cluster))
	created, err := env.CoreV1().ConfigMaps(a.Namespace).Create(ctx, cm, metav1.CreateOptions{FieldManager: "user"})
	if err != nil {
		return fmt.Errorf("create Application %s: %w", a, err)
	}
	a.uid = created.UID
	return nil
}

// update gives the Application these objects.
func (a *app) update(ctx context.Context, objects []object) error {
	text, err := manifestOf(objects)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(object{"data": object{application.ManifestKey: text}})
	if err != nil {
		return err
	}
	return change(ctx, kit.ConfigMaps, a.NamespacedName, string(patch))
}

// delete deletes the Application, if it is there.
func (a *app) delete(ctx context.Context) error {
	err := env.CoreV1().ConfigMaps(a.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Application %s: %w", a, err)
	}
	return nil
}

// read gives the Application as its agent would see it, or nil.
func (a *app) read(ctx context.Context) (*application.Application, error) {
	cm, err := env.CoreV1().ConfigMaps(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return application.Read(cm)
}

// settled complains unless the agent says that the Application runs as its spec
// is now.
func (a *app) settled(ctx context.Context) error {
	read, err := a.read(ctx)
	switch {
	case err != nil:
		return err
	case read == nil:
		return fmt.Errorf("there is no Application %s", a)
	case read.Status.State != application.StateRunning || read.Status.ObservedSpec != read.Spec.Digest():
		return fmt.Errorf("Application %s is %s: %v", a, read.Status.State, read.Status.Conditions)
	}
	return nil
}

// check complains unless these objects are there, with all that the manifest
// says of them, and the other ones that the Application may have are not.
func (a *app) check(ctx context.Context, objects []object) error {
	wanted := map[string]object{}
	for _, want := range objects {
		kind, _ := want["kind"].(string)
		wanted[strings.ToLower(kind)] = want
	}
	for kind, resource := range resources {
		name := a.named(kind)
		live, err := get(ctx, resource, name)
		if err != nil {
			return err
		}
		if err := compare(kind+" "+name.String(), wanted[kind], live); err != nil {
			return err
		}
	}
	return nil
}

func compare(what string, want object, live *unstructured.Unstructured) error {
	switch {
	case want == nil && live == nil:
		return nil
	case want == nil:
		return fmt.Errorf("%s is there", what)
	case live == nil:
		return fmt.Errorf("%s is not there", what)
	case !contains(live.Object, want):
		return fmt.Errorf("%s is not as the manifest says: %v", what, live.Object)
	}
	return nil
}

// contains tells if everything in want is in live.
func contains(live, want any) bool {
	switch want := want.(type) {
	case object:
		fields, _ := live.(object)
		for name, value := range want {
			if !contains(fields[name], value) {
				return false
			}
		}
		return true
	case []any:
		items, _ := live.([]any)
		for i, value := range want {
			if len(items) != len(want) || !contains(items[i], value) {
				return false
			}
		}
		return true
	}
	return live == want
}

func manifestOf(objects []object) (string, error) {
	documents := make([]string, 0, len(objects))
	for _, each := range objects {
		text, err := json.Marshal(each)
		if err != nil {
			return "", err
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "\n---\n"), nil
}

// get reads an object; nil if there is none.
func get(ctx context.Context, resource gvr.GroupVersionResource, name types.NamespacedName) (*unstructured.Unstructured, error) {
	return env.Find(ctx, resource, name.Namespace, name.Name)
}

// change patches an object as another client would.
func change(ctx context.Context, resource gvr.GroupVersionResource, name types.NamespacedName, patch string) error {
	return env.TryChange(ctx, resource, name.Namespace, name.Name, patch)
}
