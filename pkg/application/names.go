package application

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Domain and Prefix mark the labels, annotations and finalizers of this project.
const (
	Domain = manifest.Domain
	Prefix = Domain + "/"
)

// The annotations of users. docs/reference.md has the values and the effect of each name here.
const (
	FormatAnnotation             = Prefix + "application"
	ClusterAnnotation            = Prefix + "cluster"
	ServiceAccountAnnotation     = Prefix + "service-account"
	ForceDeleteAnnotation        = Prefix + "force-delete"
	ModeAnnotation               = Prefix + "mode"
	AdoptAnnotation              = Prefix + "adopt"
	DeletionPolicyAnnotation     = Prefix + "deletion-policy"
	HoldUntilAnnotation          = Prefix + "hold-until"
	HoldAnnotation               = Prefix + "hold"
	HooksAnnotation              = Prefix + "hooks"
	InitContainersAnnotation     = Prefix + "hooks-init-containers"
	ShutdownGraceTimeAnnotation  = Prefix + "shutdown-grace-time"
	ShutdownStrategyAnnotation   = Prefix + "shutdown-failure-strategy"
	ShutdownRetryCountAnnotation = Prefix + "shutdown-retry-count"
	ShutdownRetryAnnotation      = Prefix + "shutdown-retry"
	GeneratedFromAnnotation      = Prefix + "generated-from"
	GuardAnnotation              = Prefix + "guard"
	ValuesFromAnnotation         = Prefix + "values-from"
	AfterAnnotation              = Prefix + "after"
)

// The annotations that only the webhook writes: the user who set mode or hold of an Application, and
// the signature by which agents know that the Application was admitted.
const (
	HeldByAnnotation    = Prefix + "held-by"
	SignatureAnnotation = Prefix + "signature"
)

const (
	// Format is the only format version.
	Format = "v1"
	// LocalCluster is the target of an Application that names none.
	LocalCluster = "local"
	// DefaultServiceAccount writes the objects where an account is required and none is named.
	DefaultServiceAccount = "krake-deployer"
)

// The keys of the data.
const (
	specPrefix        = "spec."
	ManifestKey       = specPrefix + "manifest"
	ObserverSchemaKey = specPrefix + "observer_schema"
	ToscaKey          = specPrefix + "tosca"
	CSARKey           = specPrefix + "csar"

	MangledSchemaKey = "status.mangled_observer_schema"
	TranslatedKey    = "status.translated_manifest"
	LastAppliedKey   = "status.last_applied_manifest"
	LastObservedKey  = "status.last_observed_manifest"
	LearnedKey       = "status.learned"
	StatusKey        = "status"

	inventoryPrefix = "inventory."
)

// The labels of an Application and of what administrators create, and the finalizers.
const (
	ClusterLabel   = Prefix + "cluster"
	StateLabel     = Prefix + "state"
	AggregateLabel = Prefix + "aggregate-to-agent"
	EnrolmentLabel = Prefix + "enrolment"

	holderPrefix    = "holder." + Prefix
	finalizerSuffix = "." + Prefix + "resources"
)

// The marks of applied objects. The label is an index and proves nothing; the annotations do.
const (
	OwnedByLabel       = Prefix + "owned-by"
	OwnerAnnotation    = Prefix + "owner"
	OwnerUIDAnnotation = Prefix + "owner-uid"
)

// The namespaces of the webhook and of the agents. An agent is the ServiceAccount there that has
// the name of its cluster.
const (
	SystemNamespace = "krake-system"
	AgentsNamespace = "krake-agents"
	// AgentUserPrefix begins the names of agents as users. The name of the cluster follows.
	AgentUserPrefix = "system:serviceaccount:" + AgentsNamespace + ":"
	// ActingAs begins the verbs that allow a client to make a request as a service account. The verb of the request follows.
	ActingAs = "impersonate-on:serviceaccount:"
)

// The virtual resources that users have rights on: an Application to delete or to hold, and a cluster to
// deploy to.
const (
	ApplicationsResource = "applications"
	ClustersResource     = "clusters"
	DeployVerb           = "deploy-to"
)

// The annotations of the Lease on the hub of a cluster's agent: the UID of the target's namespace
// kube-system, which identifies the target, and the UID of the [TargetLease].
const (
	TargetAnnotation      = Prefix + "target"
	TargetLeaseAnnotation = Prefix + "target-lease"
)

// The annotations of the Leases on the target of an agent with several shards: their number, and the
// largest number that another process may still work by.
const (
	ShardsAnnotation       = Prefix + "shards"
	ShardsBeforeAnnotation = Prefix + "shards-before"
)

// MostShards is the largest number of shards of an agent: its role names their Leases.
const MostShards = 8

// HubLease returns the name of the Lease on the hub that binds the name of a cluster to one target.
func HubLease(cluster string) string { return "krake-cluster-" + cluster }

// TargetLease returns the name of the Lease on the target that allows one replica of the agent to
// act.
func TargetLease(cluster string) string { return "krake-agent-" + cluster }

// ShardLease returns the name of the Lease on the target for a shard. That of the first shard, 0, is
// the [TargetLease].
func ShardLease(cluster string, shard int) string {
	if shard == 0 {
		return TargetLease(cluster)
	}
	return TargetLease(cluster) + ".shard-" + strconv.Itoa(shard)
}

// UserAnnotations returns the annotations of this project that a user may write.
func UserAnnotations() []string {
	return []string{
		FormatAnnotation, ClusterAnnotation, ForceDeleteAnnotation, ServiceAccountAnnotation,
		ModeAnnotation, AdoptAnnotation, DeletionPolicyAnnotation, HoldUntilAnnotation, HoldAnnotation,
		HooksAnnotation, InitContainersAnnotation,
		ShutdownGraceTimeAnnotation, ShutdownStrategyAnnotation, ShutdownRetryCountAnnotation, ShutdownRetryAnnotation,
		GeneratedFromAnnotation, GuardAnnotation, ValuesFromAnnotation, AfterAnnotation,
	}
}

// SpecKeys returns the keys of the data that a user may write and an agent carries out.
func SpecKeys() []string { return []string{ManifestKey, ObserverSchemaKey, ToscaKey, CSARKey} }

// IsSpecKey reports whether a key of the data belongs to the user's spec, known or not.
func IsSpecKey(key string) bool { return strings.HasPrefix(key, specPrefix) }

// HolderLabel returns the label that selects the Applications for the agent of a cluster. These are
// the Applications with objects on the cluster, now or soon.
func HolderLabel(cluster string) string { return holderPrefix + cluster }

// Finalizer returns the finalizer that keeps an Application until the cluster has none of its objects.
func Finalizer(cluster string) string { return cluster + finalizerSuffix }

// InventoryKey returns the key of the inventory that the agent of the cluster writes.
func InventoryKey(cluster string) string { return inventoryPrefix + cluster }

// IsOurFinalizer reports whether an agent set the finalizer.
func IsOurFinalizer(finalizer string) bool { return strings.HasSuffix(finalizer, finalizerSuffix) }

// IsAgentKey reports whether only an agent may write this key of the data.
func IsAgentKey(key string) bool {
	return key == StatusKey || key == LearnedKey || key == LastObservedKey || strings.HasPrefix(key, inventoryPrefix)
}

// IsKeyOf reports whether the agent of the cluster may write this key of the data. Only the agent
// of the current cluster writes the status. It also writes the documents that the webhook cannot
// compute for a URL source.
func IsKeyOf(key, cluster string, current bool) bool {
	switch key {
	case InventoryKey(cluster):
		return true
	case StatusKey, LearnedKey, LastObservedKey, LastAppliedKey, MangledSchemaKey, TranslatedKey:
		return current
	}
	return false
}

// IsStatusKey reports whether the webhook or an agent writes this key of the data.
func IsStatusKey(key string) bool {
	return IsAgentKey(key) || strings.HasPrefix(key, StatusKey+".") // those of a newer version among them
}

// IsStatusLabel reports whether the webhook or an agent writes this label.
func IsStatusLabel(label string) bool {
	return label == ClusterLabel || label == StateLabel || strings.HasPrefix(label, holderPrefix)
}

// Marks returns the marks of an object of an Application. The annotations prove that this very
// object belongs to this very Application; the label finds it.
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

// OwnerOf returns the Application that an object names as its owner. An object whose annotation was
// copied from another object has no owner.
func OwnerOf(live map[string]any) (owner types.NamespacedName, ok bool) {
	text, _, _ := unstructured.NestedString(live, "metadata", "annotations", OwnerAnnotation)
	name, self, _ := strings.Cut(text, " ")
	owner.Namespace, owner.Name, ok = strings.Cut(name, "/")
	id, err := manifest.Identify(live)
	return owner, ok && err == nil && self == selfOf(id)
}

func selfOf(id manifest.ID) string {
	return strings.Join([]string{id.GroupVersionKind().Group, id.Kind, id.Namespace, id.Name}, "/")
}
