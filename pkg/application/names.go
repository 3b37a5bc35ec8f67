package application

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Domain and Prefix mark what is ours in labels, annotations and finalizers.
const (
	Domain = manifest.Domain
	Prefix = Domain + "/"
)

// What a user writes.
const (
	// FormatAnnotation makes a ConfigMap an Application; its value is the format version.
	FormatAnnotation = Prefix + "application"
	// Format is the only format version there is.
	Format = "v1"
	// ClusterAnnotation names the target cluster.
	ClusterAnnotation = Prefix + "cluster"
	// LocalCluster is the target of an Application that names none.
	LocalCluster = "local"
	// ServiceAccountAnnotation names the identity to act as on the target, and
	// DefaultServiceAccount is that where one is required and none is named.
	ServiceAccountAnnotation = Prefix + "service-account"
	DefaultServiceAccount    = "krake-deployer"
	// ForceDeleteAnnotation gives up on objects: "true" on all of an Application
	// that is being deleted, names of clusters on those that these hold. See [GivenUp].
	ForceDeleteAnnotation = Prefix + "force-delete"
	// ModeAnnotation is a [Mode].
	ModeAnnotation = Prefix + "mode"
	// AdoptAnnotation, "true", takes over objects that exist already and belong to
	// no Application.
	AdoptAnnotation = Prefix + "adopt"
	// DeletionPolicyAnnotation is a [DeletionPolicy].
	DeletionPolicyAnnotation = Prefix + "deletion-policy"
	// HoldUntilAnnotation, a time as in RFC 3339, has drift recorded and not
	// reverted until then: on an Application, or on one of its objects.
	HoldUntilAnnotation = Prefix + "hold-until"
	// HoldAnnotation, "deny", forbids holds on the objects of an Application.
	HoldAnnotation = Prefix + "hold"
	// HooksAnnotation names hooks, with commas between: complete, shutdown. See [Hook].
	HooksAnnotation = Prefix + "hooks"
	// InitContainersAnnotation, "true", has the hooks injected into init containers, too.
	InitContainersAnnotation = Prefix + "hooks-init-containers"
	// What an Application says of its shutdown: how long an attempt takes at most, what
	// becomes of it if it does not confirm, how often it is asked again, and, with a
	// new value each time, that the agent is to try once more after it has given up.
	ShutdownGraceTimeAnnotation  = Prefix + "shutdown-grace-time"
	ShutdownStrategyAnnotation   = Prefix + "shutdown-failure-strategy"
	ShutdownRetryCountAnnotation = Prefix + "shutdown-retry-count"
	ShutdownRetryAnnotation      = Prefix + "shutdown-retry"
	// GeneratedFromAnnotation names what a front end has made the Application from, as
	// Habitat/shop. It has no effect on the Application.
	GeneratedFromAnnotation = Prefix + "generated-from"

	specPrefix        = "spec."
	ManifestKey       = specPrefix + "manifest"
	ObserverSchemaKey = specPrefix + "observer_schema"
	// ToscaKey is a TOSCA template, or the URL of one; CSARKey an archive, or the URL
	// of one. They are translated if there is no manifest, the template first.
	ToscaKey = specPrefix + "tosca"
	CSARKey  = specPrefix + "csar"
)

// Where webhook and agents run. An agent is the ServiceAccount of its cluster's
// name there.
const (
	SystemNamespace = "krake-system"
	AgentsNamespace = "krake-agents"
)

// The virtual resources that users have rights on: an Application, as it is
// deleted, and a cluster, as Applications are deployed to it.
const (
	ApplicationsResource = "applications"
	ClustersResource     = "clusters"
	DeployVerb           = "deploy-to"
)

// What the Lease of a cluster's agent on the hub says: the UID of the target's
// namespace kube-system, which identifies the target, and the UID of the Lease
// there by which one of its replicas acts.
const (
	TargetAnnotation      = Prefix + "target"
	TargetLeaseAnnotation = Prefix + "target-lease"
)

// HubLease is the name of the Lease on the hub by which one target has the name
// of the cluster.
func HubLease(cluster string) string { return "krake-cluster-" + cluster }

// TargetLease is the name of the Lease on the target by which one of the agent's
// replicas acts.
func TargetLease(cluster string) string { return "krake-agent-" + cluster }

// UserAnnotations are the annotations of ours that a user may write.
func UserAnnotations() []string {
	return []string{
		FormatAnnotation, ClusterAnnotation, ForceDeleteAnnotation, ServiceAccountAnnotation,
		ModeAnnotation, AdoptAnnotation, DeletionPolicyAnnotation, HoldUntilAnnotation, HoldAnnotation,
		HooksAnnotation, InitContainersAnnotation,
		ShutdownGraceTimeAnnotation, ShutdownStrategyAnnotation, ShutdownRetryCountAnnotation, ShutdownRetryAnnotation,
		GeneratedFromAnnotation,
	}
}

// SpecKeys are the keys of the data that a user may write and an agent carries out.
func SpecKeys() []string { return []string{ManifestKey, ObserverSchemaKey, ToscaKey, CSARKey} }

// IsSpecKey tells if a key of the data belongs to the user's spec, known or not.
func IsSpecKey(key string) bool { return strings.HasPrefix(key, specPrefix) }

// What webhook and agent write.
const (
	MangledSchemaKey = "status.mangled_observer_schema"
	// TranslatedKey has the manifest that a template or an archive was translated to
	// (step 0).
	TranslatedKey   = "status.translated_manifest"
	LastAppliedKey  = "status.last_applied_manifest"
	LastObservedKey = "status.last_observed_manifest"
	LearnedKey      = "status.learned"
	StatusKey       = "status"

	inventoryPrefix = "inventory."
	holderPrefix    = "holder." + Prefix
	finalizerSuffix = "." + Prefix + "resources"

	// ClusterLabel and StateLabel are for people: kubectl get cm -L krake.dev/state.
	ClusterLabel = Prefix + "cluster"
	StateLabel   = Prefix + "state"
)

// Labels of what administrators have for webhook and agents.
const (
	// AggregateLabel, "true", makes the rights of a ClusterRole those of the agents.
	AggregateLabel = Prefix + "aggregate-to-agent"
	// EnrolmentLabel is on all that the hub keeps for a further cluster, with its name.
	EnrolmentLabel = Prefix + "enrolment"
)

// Marks on applied objects.
const (
	// OwnedByLabel selects the objects of all Applications; its value is an
	// index, not a proof.
	OwnedByLabel       = Prefix + "owned-by"
	OwnerAnnotation    = Prefix + "owner"
	OwnerUIDAnnotation = Prefix + "owner-uid"
)

// HolderLabel is the label by which the agent of a cluster selects the
// Applications that it holds, or is to hold, objects of.
func HolderLabel(cluster string) string { return holderPrefix + cluster }

// Finalizer keeps an Application until the agent of the cluster has deleted its objects.
func Finalizer(cluster string) string { return cluster + finalizerSuffix }

// InventoryKey is where the agent of the cluster writes what it holds.
func InventoryKey(cluster string) string { return inventoryPrefix + cluster }

// HoldersOf gives the clusters that hold, or are to hold, objects of the
// Application, as labels and finalizers say, sorted.
func HoldersOf(cm *corev1.ConfigMap) []string {
	var holders []string
	for label := range cm.Labels {
		if cluster, ok := strings.CutPrefix(label, holderPrefix); ok {
			holders = append(holders, cluster)
		}
	}
	for _, finalizer := range cm.Finalizers {
		if cluster, ok := strings.CutSuffix(finalizer, finalizerSuffix); ok {
			holders = append(holders, cluster)
		}
	}
	slices.Sort(holders)
	return slices.Compact(holders)
}

// IsOurFinalizer tells if an agent set the finalizer.
func IsOurFinalizer(finalizer string) bool { return strings.HasSuffix(finalizer, finalizerSuffix) }

// IsAgentKey tells if only an agent may write this key of the data.
func IsAgentKey(key string) bool {
	switch key {
	case StatusKey, LearnedKey, LastObservedKey:
		return true
	}
	return strings.HasPrefix(key, inventoryPrefix)
}

// IsKeyOf tells if the agent of the cluster may write this key of the data.
// The status is written by that of the current cluster alone, and what the webhook
// computes where only the agent can: the translation of what is behind a URL.
func IsKeyOf(key, cluster string, current bool) bool {
	switch key {
	case InventoryKey(cluster):
		return true
	case StatusKey, LearnedKey, LastObservedKey, LastAppliedKey, MangledSchemaKey, TranslatedKey:
		return current
	}
	return false
}

// IsStatusKey tells if the webhook or an agent writes this key of the data.
func IsStatusKey(key string) bool {
	return IsAgentKey(key) || strings.HasPrefix(key, StatusKey+".") // those of a newer version among them
}

// IsStatusLabel tells if the webhook or an agent writes this label.
func IsStatusLabel(label string) bool {
	return label == ClusterLabel || label == StateLabel || strings.HasPrefix(label, holderPrefix)
}

// Marks are what the objects of an Application carry. The annotations prove
// that this very object belongs to this very Application; the label finds it.
func Marks(owner types.NamespacedName, uid types.UID, id manifest.ID) manifest.Marks {
	sum := sha256.Sum256([]byte(owner.String()))
	return manifest.Marks{
		Labels: map[string]string{OwnedByLabel: hex.EncodeToString(sum[:])[:16]},
		Annotations: map[string]string{
			OwnerAnnotation:    owner.String() + " " + selfOf(id),
			OwnerUIDAnnotation: string(uid),
		},
	}
}

// OwnerOf gives the Application to which an object says, by its own annotation,
// that it belongs. What was copied from another object, with its annotations,
// belongs to nobody.
func OwnerOf(live map[string]any) (owner types.NamespacedName, ok bool) {
	metadata, _ := live["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[OwnerAnnotation].(string)
	name, self, _ := strings.Cut(text, " ")
	owner.Namespace, owner.Name, ok = strings.Cut(name, "/")
	id, err := manifest.Identify(live)
	return owner, ok && err == nil && self == selfOf(id)
}

func selfOf(id manifest.ID) string {
	return strings.Join([]string{id.GroupVersionKind().Group, id.Kind, id.Namespace, id.Name}, "/")
}
