package habitat

import (
	"fmt"
	"slices"

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

const customVersion = "customVersion"

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

// Labels of the generated objects.
const (
	// Label is "true" on every object of any Habitat.
	Label = "habitat"
	// NameLabel is the name of the Habitat.
	NameLabel = "habitat-name"
	// TopologyLabel is on Pods of [V1beta2]. The deprecated label stays, because existing
	// selectors may use it.
	TopologyLabel           = "operator.habitat.sh/topology"
	deprecatedTopologyLabel = "topology"
)

// PeerFile is the name of a ConfigMap, and the key of a peer's address in its data. All Pods of a
// namespace read the address from it.
const PeerFile = "peer-watch-file"

// DefaultFilesImage is the image of the init container that copies files.
const DefaultFilesImage = "busybox"

// Habitat is a parsed Habitat.
type Habitat struct {
	types.NamespacedName

	UID           types.UID
	Generation    int64
	CustomVersion string
	Spec          Spec
}

// Spec is the spec of either custom version.
type Spec struct {
	Count int32
	Image string
	// Env is variables of core/v1, as the user wrote them.
	Env     []any
	Storage *Storage
	// UpdateStrategy is empty in [V1beta1], which has none.
	UpdateStrategy string
	Service        Service
}

// Storage is the claim of each Pod.
type Storage struct {
	// Size has the canonical form of the API server.
	Size         string
	MountPath    string
	StorageClass string
}

// Service configures the supervisor in the Pods. An empty text is an unset one.
type Service struct {
	Name, Topology, Group, Channel        string
	ConfigSecret, FilesSecret, RingSecret string
	Binds                                 []Bind
}

// Bind connects a service to another one, by the bind's name in the plan.
type Bind struct{ Name, Service, Group string }

// CustomVersionOf returns the custom version of an object. An absent and an empty one are
// [V1beta1]. A value that is no text becomes one, and is no known version.
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

// Secret is a Secret that the Pods mount, and that the user creates.
type Secret struct {
	Name string
	// Key is the key that it must have, or empty if the Pods use all of its keys.
	Key string
	// Path is the field that names it.
	Path *field.Path
}

// The keys of Secrets.
const (
	configKey = "user.toml"
	ringKey   = "ring-key"
)

// Secrets returns the Secrets that the Habitat needs, in the order config, files, ring.
func (h Habitat) Secrets() []Secret {
	spec := field.NewPath("spec")
	if h.CustomVersion == V1beta2 {
		spec = spec.Child(V1beta2)
	}
	service := spec.Child("service")
	secrets := []Secret{
		{h.Spec.Service.ConfigSecret, configKey, service.Child("configSecretName")},
		{h.Spec.Service.FilesSecret, "", service.Child("filesSecretName")},
		{h.Spec.Service.RingSecret, ringKey, service.Child("ringSecretName")},
	}
	return slices.DeleteFunc(secrets, func(secret Secret) bool { return secret.Name == "" })
}
