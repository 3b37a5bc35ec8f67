package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/kit"
)

type object = map[string]any

// resources has the resource of each kind that the Applications of these tests have.
var resources = map[string]gvr.GroupVersionResource{"configmap": kit.ConfigMaps, "service": kit.Services, "deployment": kit.Deployments}

// app is an Application.
type app struct {
	types.NamespacedName

	cluster string
	uid     types.UID
	// lane is the lane of the Application, and prefix begins the names of its objects.
	lane   *lane
	prefix string
	// said is what the user last asked for, in words.
	said []string
	// spec has the objects that the user last asked for, by kind. refused names those
	// that the API server refuses at present. ended: the user has deleted the
	// Application.
	spec    map[string]object
	refused map[string]bool
	ended   bool
	// rival is another Application that claims one of the objects, or nil.
	rival *app
	// contested is the kind of the object that both claim and neither had before, or empty.
	contested string
	// foreign names the kinds of which another client has an object of the same name.
	foreign map[string]bool
	// replaced is the kind of the object that another client replaced while the agent
	// was down, or nil.
	replaced atomic.Pointer[string]
	// replicas of its Deployment.
	replicas int64
	// bystander: a foreign object exists beside the Application.
	bystander bool
}

// newApp returns the lane's next Application. It creates nothing.
func (l *lane) newApp() *app {
	l.apps++
	return l.appOf(fmt.Sprintf("app-%d", l.apps))
}

// newApps returns the lane's next Applications. It creates nothing.
func (l *lane) newApps(many int) []*app {
	apps := make([]*app, many)
	for i := range apps {
		apps[i] = l.newApp()
	}
	return apps
}

// each calls do for all Applications, a few at a time.
func each(apps []*app, do func(*app) error) error {
	var group errgroup.Group
	group.SetLimit(4)
	for _, a := range apps {
		group.Go(func() error { return do(a) })
	}
	return group.Wait()
}

func (l *lane) appOf(name string) *app {
	return &app{
		NamespacedName: types.NamespacedName{Namespace: l.namespace, Name: name}, lane: l, prefix: name, cluster: l.name,
		spec: map[string]object{}, refused: map[string]bool{}, foreign: map[string]bool{},
	}
}

// named returns the name of the Application's object of a kind.
func (a *app) named(kind string) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.prefix + "-" + kind}
}

// owns reports whether an object of that name is the Application or belongs to it.
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

// deployment has no replicas, unless the test asks for some, so that it needs no nodes.
func (a *app) deployment(image string) object {
	labels := object{"app": a.Name}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": a.named("deployment").Name},
		"spec": object{
			"replicas": a.replicas, "selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec":     object{"containers": []any{object{"name": "main", "image": image}}},
			},
		},
	}
}

// create creates the Application with these objects.
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

// update changes the Application to these objects.
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

// delete deletes the Application if it exists.
func (a *app) delete(ctx context.Context) error {
	err := env.CoreV1().ConfigMaps(a.Namespace).Delete(ctx, a.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Application %s: %w", a, err)
	}
	return nil
}

// read returns the Application as its agent reads it, or nil.
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

// gone returns an error while the Application exists.
func (a *app) gone(ctx context.Context) error {
	read, err := a.read(ctx)
	if err == nil && read != nil {
		return fmt.Errorf("the Application %s is still there, with %v", a, read.Inventory)
	}
	return err
}

func compare(what string, want object, live *unstructured.Unstructured) error {
	switch {
	case want == nil && live == nil:
		return nil
	case want == nil:
		return fmt.Errorf("%s is there", what)
	case live == nil:
		return fmt.Errorf("%s is not there", what)
	case !checker.Contains(live.Object, want):
		return fmt.Errorf("%s is not as the manifest says: %v", what, live.Object)
	}
	return nil
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

// get reads an object; nil if it does not exist.
func get(ctx context.Context, resource gvr.GroupVersionResource, name types.NamespacedName) (*unstructured.Unstructured, error) {
	return env.Find(ctx, resource, name.Namespace, name.Name)
}

// change patches an object as another client would.
func change(ctx context.Context, resource gvr.GroupVersionResource, name types.NamespacedName, patch string) error {
	return env.TryChange(ctx, resource, name.Namespace, name.Name, patch)
}
