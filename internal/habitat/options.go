package habitat

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// Options of the Habitat operator.
type Options struct {
	options.Server

	Election right.Election

	// Cluster is the name by which Applications select the agent of this cluster.
	Cluster string
	// Namespace has the Lease with which one of several replicas is elected.
	Namespace string
	// Namespaces limits the controllers to these namespaces; empty means all.
	Namespaces []string
	// AssumeRegistered: the controllers do not create the CustomResourceDefinition.
	AssumeRegistered bool
	// FilesImage is the image of the init container that copies files.
	FilesImage string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Server.AddFlags(flags, ":8443")
	o.Election.AddFlags(flags)
	flags.StringVar(&o.Cluster, "cluster", application.LocalCluster, "name of the cluster whose Applications the agent carries out")
	flags.StringVar(&o.Namespace, "namespace", "krake-agents", "namespace of the Lease, on the cluster where it runs")
	flags.StringSliceVar(&o.Namespaces, "namespaces", nil, "namespaces of this cluster in which objects may be (default: all)")
	flags.BoolVar(&o.AssumeRegistered, "assume-crd-registered", false, "do not register the CustomResourceDefinition of Habitats; an administrator does")
	flags.StringVar(&o.FilesImage, "habitat-files-image", habitat.DefaultFilesImage, "image with sh and cp, of the init container that copies the files of filesSecretName")
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	failures := []error{
		o.Logging.Validate(), o.Election.Validate(),
		options.ValidateNames("--cluster", o.Cluster), options.ValidateNames("--namespaces", o.Namespaces...),
	}
	if o.Namespace == "" {
		failures = append(failures, errors.New("--namespace: must not be empty"))
	}
	if o.FilesImage == "" {
		failures = append(failures, errors.New("--habitat-files-image: must not be empty"))
	}
	return errors.Join(failures...)
}
