package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	kinds "github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// fieldManager is the name of these commands in managedFields. Flux undoes the changes of managers
// whose names begin with kubectl, and so would end a hold.
const fieldManager = "krake-cli"

// The limits of kubectl for discovery. Those of client-go would make a command with 100 objects take
// 20 seconds.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 300
)

// environment is what the commands share.
type environment struct {
	genericiooptions.IOStreams

	// hub configures the connection to the API server with the Applications. target
	// configures the one to their objects, if these are on another cluster.
	hub         *genericclioptions.ConfigFlags
	target      targetFlags
	showPrivate bool
	now         func() time.Time
}

func (e *environment) addPrivateTo(command *cobra.Command) {
	command.Flags().BoolVar(&e.showPrivate, "show-private", false,
		"show values that may be secrets: in environment and arguments of containers, in the data of ConfigMaps, in fields called passwords; never those of a Secret")
}

// newFlags returns the flags of kubectl. Warnings of an API server are printed as kubectl prints them.
func (e *environment) newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
		return config
	})
}

// applications returns the client of the hub, and the namespace that the flags select.
func (e *environment) applications() (client corev1.ConfigMapsGetter, namespace string, err error) {
	config, err := e.hub.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	if client, err = corev1.NewForConfig(config); err != nil {
		return nil, "", err
	}
	namespace, _, err = e.hub.ToRawKubeConfigLoader().Namespace()
	return client, namespace, err
}

// metadata returns a client of the hub that reads objects without their data.
func (e *environment) metadata() (metadata.Interface, error) {
	config, err := e.hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return metadata.NewForConfig(config)
}

// targetFlags configure the connection to the cluster with the objects, if it is not the hub.
type targetFlags struct{ kubeconfig, context string }

func (t *targetFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.kubeconfig, "target-kubeconfig", "", "kubeconfig file of the cluster with the objects (default: that of the hub)")
	flags.StringVar(&t.context, "target-context", "", "context of the cluster with the objects (default: for cluster local that of the hub)")
}

// objects are the clients of the cluster with the objects.
type objects struct {
	dynamic.Interface

	kinds     meta.RESTMapper
	discovery discovery.DiscoveryInterface
	// described is not cached: kubectl krake ui uses it for hours.
	described openapi.Client
	reviews   authorization.SubjectAccessReviewInterface
}

// objectsOf connects to the cluster of an Application. For any but the local one, flags must
// name the cluster.
func (e *environment) objectsOf(cluster string) (objects, error) {
	flags := e.hub
	switch {
	case e.target != targetFlags{}:
		flags = e.newFlags()
		flags.KubeConfig, flags.Context = &e.target.kubeconfig, &e.target.context
		if e.target.kubeconfig == "" {
			flags.KubeConfig = e.hub.KubeConfig
		}
	case cluster != application.LocalCluster:
		return objects{}, fmt.Errorf("the objects are on cluster %s: name it by --target-context or --target-kubeconfig", cluster)
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return objects{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return objects{}, err
	}
	served, err := flags.ToDiscoveryClient()
	if err != nil {
		return objects{}, err
	}
	described, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return objects{}, err
	}
	rights, err := authorization.NewForConfig(config)
	if err != nil {
		return objects{}, err
	}
	kinds, err := flags.ToRESTMapper()
	return objects{client, kinds, served, described.OpenAPIV3(), rights.SubjectAccessReviews()}, err
}

// types returns the types of a kind that is not built in. If the cluster does not describe it, they are nil, as they
// are for an agent there.
func (o objects) types(id manifest.ID) *apitypes.Types {
	found, err := kinds.ReadTypes(o.described, id)
	if err != nil {
		return nil
	}
	return found
}

// typesOn returns the types of a cluster, and connects to it only for kinds that are not built in. Without a
// connection, they are nil.
func typesOn(connect func(cluster string) (objects, error), cluster string) plan.TypesOf {
	known := map[schema.GroupVersion]*apitypes.Types{}
	return func(id manifest.ID) *apitypes.Types {
		if apitypes.IsBuiltIn(id) {
			return nil
		}
		version := id.GroupVersionKind().GroupVersion()
		if _, ok := known[version]; !ok {
			known[version] = nil
			if objects, err := connect(cluster); err == nil {
				known[version] = objects.types(id)
			}
		}
		return known[version]
	}
}

// live reads an object, nil if there is none. For a kind without namespaces it ignores the
// namespace.
func (o objects) live(ctx context.Context, id manifest.ID) (map[string]any, error) {
	gvk := id.GroupVersionKind()
	mapping, err := o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("read %s: the cluster with the objects does not serve it: %w", id, err)
	}
	return o.read(ctx, mapping, id, id.Namespace)
}

// read reads an object, nil if there is none. Home is the namespace of an object without one.
func (o objects) read(ctx context.Context, mapping *meta.RESTMapping, id manifest.ID, home string) (map[string]any, error) {
	object, err := o.at(mapping, cmp.Or(id.Namespace, home)).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return object.Object, nil
}

// at returns the client of a kind in a namespace, which it ignores for a kind without namespaces.
func (o objects) at(mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return o.Resource(mapping.Resource)
	}
	return o.Resource(mapping.Resource).Namespace(namespace)
}

// mappingOf finds a kind by any name that kubectl accepts.
func (o objects) mappingOf(name string) (*meta.RESTMapping, error) {
	var gvk schema.GroupVersionKind
	full, resource := schema.ParseResourceArg(strings.ToLower(name))
	if full != nil {
		gvk, _ = o.kinds.KindFor(*full)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = o.kinds.KindFor(resource.WithVersion("")); err != nil {
			return nil, fmt.Errorf("find the kind %s: %w", name, err)
		}
	}
	return o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// kindName splits KIND/NAME.
func kindName(text string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not of the form KIND/NAME, as deployment/web", text)
	}
	return kind, name, nil
}

// resourceName returns "deployment/web".
func resourceName(id manifest.ID) string { return strings.ToLower(id.Kind) + "/" + id.Name }

// annotationsOf returns those of a live object, none if there is no object.
func annotationsOf(live map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: live}).GetAnnotations()
}
