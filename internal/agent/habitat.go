package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/habitat"
	front "github.com/krake-observer/krake-observer/pkg/habitat"
)

// recheckHabitats is how often the Habitat operator looks at every Habitat again.
const recheckHabitats = 30 * time.Second

// Habitat are the options of the process that makes Applications of Habitats.
type Habitat struct {
	// Enabled: this process carries out Habitats, and no Applications.
	Enabled bool
	// AssumeRegistered leaves the CustomResourceDefinition to somebody else.
	AssumeRegistered bool
	// FilesImage is the image of the init container that copies files.
	FilesImage string
}

func (h *Habitat) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&h.Enabled, "habitat", false,
		"make Applications of Habitats, for the agent of this cluster to carry out, and keep their peer files; this process is then no agent itself")
	flags.BoolVar(&h.AssumeRegistered, "assume-crd-registered", false, "with --habitat: do not register the CustomResourceDefinition of Habitats; somebody else does")
	flags.StringVar(&h.FilesImage, "habitat-files-image", front.DefaultFilesImage, "with --habitat: image with sh and cp, of the init container that copies the files of filesSecretName")
}

// validate refuses what would be without effect.
func (h *Habitat) validate(o *Options) error {
	if !h.Enabled {
		if h.AssumeRegistered {
			return errors.New("--assume-crd-registered: has a meaning with --habitat only")
		}
		return nil
	}
	var failures []error
	for _, wrong := range []struct {
		flag string
		set  bool
	}{
		{"--hub-kubeconfig", o.HubKubeconfig != ""},
		{"--hub-namespaces", len(o.Namespaces.Hub) > 0},
		{"--namespace-map", len(o.Namespaces.Map) > 0},
		{"--hooks", o.Hooks.Enabled},
		{"--url-source-hosts", len(o.Sources.Hosts) > 0},
		{"--require-service-account", o.RequireServiceAccount},
	} {
		if wrong.set {
			failures = append(failures, fmt.Errorf("%s: cannot be used with --habitat: Habitats are where hub and target are one cluster, and that flag is the agent's", wrong.flag))
		}
	}
	if h.FilesImage == "" {
		failures = append(failures, errors.New("--habitat-files-image: must not be empty"))
	}
	return errors.Join(failures...)
}

// runHabitats runs the controllers of Habitats in the place of the agent.
func runHabitats(ctx context.Context, options Options, configs Configs) error {
	return habitat.Run(ctx, habitat.Options{
		Config: configs.Target, Logger: configs.Logger, Metrics: options.Metrics.Server(), HealthAddress: options.HealthAddress,
		Cluster: options.Cluster, Namespaces: options.Namespaces.Target,
		AssumeRegistered: options.Habitat.AssumeRegistered, FilesImage: options.Habitat.FilesImage, Recheck: recheckHabitats,
		LeaseNamespace: options.Namespace, Elect: options.Lease.Elect,
		LeaseDuration: options.Lease.Duration, RenewDeadline: options.Lease.RenewDeadline, RetryPeriod: options.Lease.RetryPeriod,
	})
}
