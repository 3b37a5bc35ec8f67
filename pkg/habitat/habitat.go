package habitat

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The custom resource.
const (
	Group      = "habitat.sh"
	Version    = "v1beta1"
	APIVersion = Group + "/" + Version
	Kind       = "Habitat"
	Plural     = "habitats"
)

// The custom versions.
const (
	V1beta1 = "v1beta1"
	V1beta2 = "v1beta2"
)

// Topologies of a service.
const (
	Standalone = "standalone"
	Leader     = "leader"
)

// Update strategies.
const (
	RollingUpdate = "RollingUpdate"
	OnDelete      = "OnDelete"
)

// Labels of what is generated.
const (
	// Label is "true" on all that belongs to any Habitat.
	Label = "habitat"
	// NameLabel has the name of the Habitat.
	NameLabel = "habitat-name"
	// TopologyLabel is that of Pods of [V1beta2]. The other one is what existing
	// selectors may still use.
	TopologyLabel           = "operator.habitat.sh/topology"
	deprecatedTopologyLabel = "topology"
)

// PeerFile is the name of the ConfigMap from which all Pods of a namespace read the
// address of a peer, and the key of its data that holds it.
const PeerFile = "peer-watch-file"

// DefaultFilesImage is the image of the init container that copies files.
const DefaultFilesImage = "busybox"

// Habitat is one that was parsed.
type Habitat struct {
	types.NamespacedName

	UID           types.UID
	Generation    int64
	CustomVersion string
	Spec          Spec
}

// Spec is what a user asks for, in whatever custom version.
type Spec struct {
	Count int32
	Image string
	// Env are variables as core/v1 has them, as the user wrote them.
	Env     []any
	Storage *Storage
	// UpdateStrategy is empty in [V1beta1], which has none.
	UpdateStrategy string
	Service        Service
}

// Storage is the claim that each Pod has.
type Storage struct {
	// Size is written as the API server writes it.
	Size         string
	MountPath    string
	StorageClass string
}

// Service is what the supervisor in the Pods is told. An empty text is an unset one.
type Service struct {
	Name, Topology, Group, Channel        string
	ConfigSecret, FilesSecret, RingSecret string
	Binds                                 []Bind
}

// Bind connects a service to another one, by the name that it has in the plan.
type Bind struct{ Name, Service, Group string }

// CustomVersionOf gives the custom version that an object says. An absent and an
// empty one are [V1beta1]; what is no text is given as one, and is no version.
func CustomVersionOf(object map[string]any) string {
	switch version := object[customVersion].(type) {
	case nil:
		return V1beta1
	case string:
		if version == "" {
			return V1beta1
		}
		return version
	default:
		return fmt.Sprint(version)
	}
}

// Secret is one that the Pods mount, and that somebody else makes.
type Secret struct {
	Name string
	// Key is what it must have; none if all of its keys are used.
	Key string
	// Path is the field that names it.
	Path *field.Path
}

// Secrets gives those that the Habitat needs, in the order config, files, ring.
func (h Habitat) Secrets() []Secret {
	service := specPath(h.CustomVersion).Child("service")
	var secrets []Secret
	for _, secret := range []Secret{
		{h.Spec.Service.ConfigSecret, configKey, service.Child("configSecretName")},
		{h.Spec.Service.FilesSecret, "", service.Child("filesSecretName")},
		{h.Spec.Service.RingSecret, ringKey, service.Child("ringSecretName")},
	} {
		if secret.Name != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// specPath is where a custom version has its fields.
func specPath(version string) *field.Path {
	if version == V1beta2 {
		return field.NewPath("spec", V1beta2)
	}
	return field.NewPath("spec")
}
