// Package env is what all commands share: the connections to the hub and to the cluster with the objects, the flags of
// kubectl, the formats in which commands print, and their errors.
package env

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

// FieldManager is the name of these commands in managedFields. Flux undoes the changes of managers
// whose names begin with kubectl, and so would end a hold.
const FieldManager = "krake-cli"

// The limits of kubectl for discovery. Those of client-go would make a command with 100 objects take
// 20 seconds.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 300
)

// Environment is what the commands share.
type Environment struct {
	genericiooptions.IOStreams

	// Hub configures the connection to the API server with the Applications. Target
	// configures the one to their objects, if these are on another cluster.
	Hub         *genericclioptions.ConfigFlags
	Target      targetFlags
	ShowPrivate bool
	Now         func() time.Time
}

// AddPrivateTo adds the flag --show-private.
func (e *Environment) AddPrivateTo(command *cobra.Command) {
	command.Flags().BoolVar(&e.ShowPrivate, "show-private", false,
		"show values that may be secrets: in environment and arguments of containers, in the data of ConfigMaps, in fields called passwords; never those of a Secret")
}

// NewFlags returns the flags of kubectl. Warnings of an API server are printed as kubectl prints them.
func (e *Environment) NewFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
		return config
	})
}

// Applications returns the client of the hub, and the namespace that the flags select.
func (e *Environment) Applications() (client corev1.ConfigMapsGetter, namespace string, err error) {
	config, err := e.Hub.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	if client, err = corev1.NewForConfig(config); err != nil {
		return nil, "", err
	}
	namespace, _, err = e.Hub.ToRawKubeConfigLoader().Namespace()
	return client, namespace, err
}

// Metadata returns a client of the hub that reads objects without their data.
func (e *Environment) Metadata() (metadata.Interface, error) {
	config, err := e.Hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return metadata.NewForConfig(config)
}

// targetFlags configure the connection to the cluster with the objects, if it is not the hub.
type targetFlags struct{ kubeconfig, context string }

func (t *targetFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.kubeconfig, "target-kubeconfig", "", "kubeconfig file of the cluster with the objects (default: that of the hub)")
	flags.StringVar(&t.context, "target-context", "", "context of the cluster with the objects (default: for cluster local that of the hub)")
}

// Objects are the clients of the cluster with the objects.
type Objects struct {
	dynamic.Interface

	Kinds     meta.RESTMapper
	Discovery discovery.DiscoveryInterface
	// described is not cached: kubectl krake ui uses it for hours.
	described openapi.Client
	Reviews   authorization.SubjectAccessReviewInterface
}

// ObjectsOf connects to the cluster of an Application. For any but the local one, flags must
// name the cluster.
func (e *Environment) ObjectsOf(cluster string) (Objects, error) {
	flags := e.Hub
	switch {
	case e.Target != targetFlags{}:
		flags = e.NewFlags()
		flags.KubeConfig, flags.Context = &e.Target.kubeconfig, &e.Target.context
		if e.Target.kubeconfig == "" {
			flags.KubeConfig = e.Hub.KubeConfig
		}
	case cluster != application.LocalCluster:
		return Objects{}, fmt.Errorf("the objects are on cluster %s: name it by --target-context or --target-kubeconfig", cluster)
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return Objects{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Objects{}, err
	}
	served, err := flags.ToDiscoveryClient()
	if err != nil {
		return Objects{}, err
	}
	described, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Objects{}, err
	}
	rights, err := authorization.NewForConfig(config)
	if err != nil {
		return Objects{}, err
	}
	kinds, err := flags.ToRESTMapper()
	return Objects{client, kinds, served, described.OpenAPIV3(), rights.SubjectAccessReviews()}, err
}

// Types returns the types of a kind that is not built in. If the cluster does not describe it, they are nil, as they
// are for an agent there.
func (o Objects) Types(id manifest.ID) *apitypes.Types {
	found, err := kinds.ReadTypes(o.described, id)
	if err != nil {
		return nil
	}
	return found
}

// TypesOn returns the types of a cluster, and connects to it only for kinds that are not built in. Without a
// connection, they are nil.
func TypesOn(connect func(cluster string) (Objects, error), cluster string) plan.TypesOf {
	known := map[schema.GroupVersion]*apitypes.Types{}
	return func(id manifest.ID) *apitypes.Types {
		if apitypes.IsBuiltIn(id) {
			return nil
		}
		version := id.GroupVersionKind().GroupVersion()
		if _, ok := known[version]; !ok {
			known[version] = nil
			if objects, err := connect(cluster); err == nil {
				known[version] = objects.Types(id)
			}
		}
		return known[version]
	}
}

// Live reads an object, nil if there is none. For a kind without namespaces it ignores the
// namespace.
func (o Objects) Live(ctx context.Context, id manifest.ID) (map[string]any, error) {
	gvk := id.GroupVersionKind()
	mapping, err := o.Kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("read %s: the cluster with the objects does not serve it: %w", id, err)
	}
	return o.Read(ctx, mapping, id, id.Namespace)
}

// Read reads an object, nil if there is none. Home is the namespace of an object without one.
func (o Objects) Read(ctx context.Context, mapping *meta.RESTMapping, id manifest.ID, home string) (map[string]any, error) {
	object, err := o.At(mapping, cmp.Or(id.Namespace, home)).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return object.Object, nil
}

// At returns the client of a kind in a namespace, which it ignores for a kind without namespaces.
func (o Objects) At(mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return o.Resource(mapping.Resource)
	}
	return o.Resource(mapping.Resource).Namespace(namespace)
}

// MappingOf finds a kind by any name that kubectl accepts.
func (o Objects) MappingOf(name string) (*meta.RESTMapping, error) {
	var gvk schema.GroupVersionKind
	full, resource := schema.ParseResourceArg(strings.ToLower(name))
	if full != nil {
		gvk, _ = o.Kinds.KindFor(*full)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = o.Kinds.KindFor(resource.WithVersion("")); err != nil {
			return nil, fmt.Errorf("find the kind %s: %w", name, err)
		}
	}
	return o.Kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// KindName splits KIND/NAME.
func KindName(text string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not of the form KIND/NAME, as deployment/web", text)
	}
	return kind, name, nil
}

// ResourceName returns "deployment/web".
func ResourceName(id manifest.ID) string { return strings.ToLower(id.Kind) + "/" + id.Name }

// AnnotationsOf returns those of a live object, none if there is no object.
func AnnotationsOf(live map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: live}).GetAnnotations()
}

// NewRoot returns the command "kubectl krake" with these commands, which print to the streams. [Fail] prints
// its errors.
func NewRoot(streams genericiooptions.IOStreams, commands func(e *Environment) []*cobra.Command) *cobra.Command {
	e := &Environment{IOStreams: streams, Now: time.Now}
	e.Hub = e.NewFlags()
	root := &cobra.Command{
		Use:   "krake",
		Short: "Show Applications, what differs on their clusters, and who has changed it",
		Annotations: map[string]string{
			cobra.CommandDisplayNameAnnotation: "kubectl krake",
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	e.Hub.AddFlags(root.PersistentFlags())
	root.AddCommand(commands(e)...)
	return root
}
