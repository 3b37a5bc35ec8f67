package enrol

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/reach"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// leastDuration is the shortest lifetime of a token that the API server grants.
	leastDuration = 10 * time.Minute
	// defaultDuration bounds how long a stolen token is of use if the theft is not noticed.
	defaultDuration = 30 * 24 * time.Hour
)

// Options of enrol.
type Options struct {
	// Hub configures the connection to the hub, as its administrator.
	Hub func() (*rest.Config, error)
	// Cluster is the name of the cluster in Applications.
	Cluster string
	// The others are flags: see AddFlags.
	HubNamespaces         []string
	NamespaceMap          []string
	Image                 string
	TokenDuration         time.Duration
	HubServer             string
	RequireServiceAccount bool
	Reach                 reach.Options
	Hooks                 bool
	Guard                 bool
	Out                   string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.HubNamespaces, "hub-namespaces", nil, "namespaces of the hub with the cluster's Applications (default: one of the cluster's name, which is created)")
	flags.StringSliceVar(&o.NamespaceMap, "namespace-map", nil, "namespace of the cluster for the objects of each namespace of the hub, as hub=target,... (default: in the namespace of the same name)")
	flags.StringVar(&o.Image, "image", "", "image of the agent (default: that of the manifests)")
	flags.DurationVar(&o.TokenDuration, "token-duration", defaultDuration, "how long the agent's token is valid; enrol the cluster again to renew it")
	flags.StringVar(&o.HubServer, "hub-server", "", "URL at which the cluster reaches the hub (default: that of the kubeconfig)")
	flags.BoolVar(&o.RequireServiceAccount, "require-service-account", false, "have the agent write as the service account of each Application, and never as itself; set it for all agents of the cluster, or for none")
	o.Reach.AddFlags(flags)
	flags.BoolVar(&o.Hooks, "hooks", false, "have the agent serve the hooks complete and shutdown of Applications, in namespaces of the cluster where krake-hooks is bound to it")
	flags.BoolVar(&o.Guard, "guard", false, "have the agent serve a webhook of the cluster that warns of changes that the agent will revert, or refuses them")
	flags.StringVar(&o.Out, "out", "", "folder to write to: a kustomization for the cluster, with its token")
}

// Validate returns all mistakes.
func (o *Options) Validate() error {
	failures := []error{validateCluster(o.Cluster)}
	namespaces, _ := o.namespaces()
	for _, namespace := range namespaces {
		failures = append(failures, validateNamespace(namespace))
	}
	for _, entry := range o.NamespaceMap {
		failures = append(failures, o.validateEntry(entry))
	}
	failures = append(failures, o.Reach.Validate())
	if o.Reach.Scope == mutate.ClusterScope && !o.RequireServiceAccount {
		failures = append(failures, errors.New("--scope=cluster: without --require-service-account every Application could do all that the agent may: add --require-service-account"))
	}
	if o.TokenDuration < leastDuration {
		failures = append(failures, fmt.Errorf("--token-duration: must be at least %s", leastDuration))
	}
	if o.HubServer != "" && !isAddress(o.HubServer) {
		failures = append(failures, fmt.Errorf("--hub-server: %q is not of the form https://HOST[:PORT]", o.HubServer))
	}
	failures = append(failures, o.validateService(o.Hooks, "hooks"), o.validateService(o.Guard, "guard"))
	if o.Out == "" {
		failures = append(failures, errors.New("--out: must name a folder"))
	}
	return errors.Join(failures...)
}

// components returns the folders of the manifests that change the target for the options.
func (o *Options) components() []string {
	var components []string
	if o.RequireServiceAccount {
		components = append(components, "components/strict/target")
	}
	if o.Reach.Scope == mutate.ClusterScope {
		components = append(components, "components/cluster-scope/target")
	}
	if o.Hooks {
		components = append(components, "components/hooks/target")
	}
	if o.Hooks && o.RequireServiceAccount {
		components = append(components, "components/hooks/strict")
	}
	return components
}

// agentComponents returns the folders of the manifests that change the agent for the options.
func (o *Options) agentComponents() []string {
	var components []string
	if o.Hooks {
		components = append(components, "components/hooks/spoke")
	}
	if o.Guard {
		components = append(components, "components/guard/spoke")
	}
	return components
}

// namespaces returns the namespaces on the hub, and whether the options name them.
func (o *Options) namespaces() (names []string, named bool) {
	if len(o.HubNamespaces) == 0 {
		return []string{o.Cluster}, false
	}
	return slices.Compact(slices.Sorted(slices.Values(o.HubNamespaces))), true
}

// validateCluster refuses names that mean something else: the hub itself, the
// account of Pods that name none, and two values of krake.dev/force-delete.
func validateCluster(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("cluster name %q: %s", name, strings.Join(problems, ", "))
	}
	switch name {
	case application.LocalCluster:
		return fmt.Errorf("cluster name %q: that is the hub itself, whose agent is in manifests/base", name)
	case "default", "true", "false":
		return fmt.Errorf("cluster name %q: the name has a special meaning: choose another one", name)
	}
	return nil
}

// validateNamespace refuses the namespaces that may have no Applications.
func validateNamespace(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("hub namespace %q: %s", name, strings.Join(problems, ", "))
	}
	switch name {
	case "kube-system", "kube-public", "kube-node-lease", application.SystemNamespace, application.AgentsNamespace:
		return fmt.Errorf("hub namespace %q: it may have no Applications: choose another one by --hub-namespaces", name)
	}
	return nil
}

// validateService bounds the name of the cluster, which is a part of the name of a Service.
// A Secret may have a longer name.
func (o *Options) validateService(isWanted bool, flag string) error {
	name := "krake-" + flag + "-" + o.Cluster
	if !isWanted || len(name) <= validation.DNS1123LabelMaxLength {
		return nil
	}
	return fmt.Errorf("--%s: the Service would be called %s, which has more than %d characters: give the cluster a shorter name", flag, name, validation.DNS1123LabelMaxLength)
}

func (o *Options) validateEntry(entry string) error {
	hub, target, ok := strings.Cut(entry, "=")
	names, _ := o.namespaces()
	switch {
	case !ok || len(validation.IsDNS1123Label(hub)) > 0 || len(validation.IsDNS1123Label(target)) > 0:
		return fmt.Errorf("--namespace-map: %q is not of the form hub=target", entry)
	case !slices.Contains(names, hub):
		return fmt.Errorf("--namespace-map: %s: %s is not among the cluster's namespaces of the hub", entry, hub)
	}
	return nil
}

func isAddress(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Scheme == "https" && address.Hostname() != "" && address.User == nil && address.RawQuery == ""
}
