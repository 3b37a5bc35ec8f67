package application

// ClusterPart stands for the name of a cluster in a [Name].
const ClusterPart = "CLUSTER"

// Writer is who may write under a name of this project. The admission policies enforce it.
type Writer string

// The writers.
const (
	ByUser    Writer = "user"
	ByWebhook Writer = "webhook"
	ByAgent   Writer = "agent"
	// ByAgentOfTarget is the agent of the target cluster alone.
	ByAgentOfTarget Writer = "agent of the target cluster"
	ByAdministrator Writer = "administrator"
)

// Name is a name of this project, as the reference page describes it.
type Name struct {
	// Key is the name, with [ClusterPart] in place of a cluster's name.
	Key string
	// On is what has the name, in words.
	On     string
	Writer Writer
	// Values are all possible values. Form describes them if they cannot be listed.
	Values []string
	Form   string
	// Default holds without it.
	Default string
	Effect  string
}

const (
	onApplication = "Application"
	onObject      = "applied object"
)

// Annotations returns all annotations of this project.
func Annotations() []Name {
	return append(userAnnotations(), []Name{
		{Key: HoldUntilAnnotation, On: onObject, Writer: ByUser, Form: "a time as in RFC 3339", Default: "no hold",
			Effect: "the same for one object, for as long as the agent's `--max-hold` allows, from when it was first seen"},
		{Key: OwnerAnnotation, On: onObject, Writer: ByAgent, Form: "`NAMESPACE/NAME GROUP/KIND/NAMESPACE/NAME`", Default: "belongs to no Application",
			Effect: "proof: which Application this very object belongs to"},
		{Key: OwnerUIDAnnotation, On: onObject, Writer: ByAgent, Form: "a UID", Default: "belongs to no Application",
			Effect: "proof, with the former: the UID of that Application"},
		{Key: TargetAnnotation, On: "Lease on the hub", Writer: ByAgent, Form: "a UID", Default: "bound to no target yet",
			Effect: "the target that has the name of the cluster: the UID of its namespace kube-system"},
		{Key: TargetLeaseAnnotation, On: "Lease on the hub", Writer: ByAgent, Form: "a UID", Default: "bound to no target yet",
			Effect: "the UID of the Lease on the target by which one replica acts"},
	}...)
}

// userAnnotations are the annotations that users write on Applications.
func userAnnotations() []Name {
	names := []Name{
		{Key: FormatAnnotation, Values: []string{Format}, Default: "a plain ConfigMap",
			Effect: "makes the ConfigMap an Application, of this format version"},
		{Key: ClusterAnnotation, Form: "the name of a cluster", Default: LocalCluster,
			Effect: "the cluster where the objects are to be; changed, it moves the Application"},
		{Key: ModeAnnotation, Values: []string{string(Enforce), string(Observe), string(Suspend)}, Default: string(Enforce),
			Effect: "`observe`: drift is reported, and nothing is written to the cluster; `suspend`: the objects are not even looked at"},
		{Key: HoldUntilAnnotation, Form: "a time as in RFC 3339", Default: "no hold",
			Effect: "drift is recorded and not reverted until then, and healed by itself afterwards"},
		{Key: HoldAnnotation, Values: []string{"deny"}, Default: "holds on objects count",
			Effect: "holds on single objects do not count"},
		{Key: AdoptAnnotation, Values: []string{"true", "false"}, Default: "false",
			Effect: "takes over objects that exist already and belong to no Application"},
		{Key: DeletionPolicyAnnotation, Values: []string{string(Delete), string(Orphan)}, Default: "delete, but for adopted objects",
			Effect: "what becomes of the objects of a deleted Application; said to be `delete`, it goes for adopted ones, too"},
		{Key: ForceDeleteAnnotation, Form: "`true`, `false`, or names of clusters with commas between", Default: "wait for the agents",
			Effect: "gives up on objects: `true` on all of an Application that is being deleted, names on those that these clusters hold"},
		{Key: ServiceAccountAnnotation, Form: "the name of a ServiceAccount", Default: "the agent itself; in strict mode " + DefaultServiceAccount,
			Effect: "the ServiceAccount of the Application's namespace on the target that writes the objects"},
		{Key: HooksAnnotation, Form: "`complete`, `shutdown`, or both with a comma between", Default: "none",
			Effect: "what Pods may tell the agent, and what they are asked: docs/hooks.md"},
		{Key: InitContainersAnnotation, Values: []string{"true", "false"}, Default: "false",
			Effect: "init containers get token, URL and certificates of the hooks, too"},
		{Key: ShutdownGraceTimeAnnotation, Form: "seconds, or a duration like `90s`; from 1s to 24h", Default: "the agent's `--shutdown-grace-time`",
			Effect: "how long an attempt to shut down may take"},
		{Key: ShutdownStrategyAnnotation, Values: []string{string(GiveUpShutdown), string(DeleteAnyway)}, Default: "the agent's `--shutdown-failure-strategy`",
			Effect: "what becomes of an Application that does not confirm its shutdown"},
		{Key: ShutdownRetryCountAnnotation, Form: "a number from 0 to 100", Default: "the agent's `--shutdown-retry-count`",
			Effect: "how many attempts follow the first one"},
		{Key: ShutdownRetryAnnotation, Form: "any text, another one each time", Default: "no wish",
			Effect: "asks once more for the shutdown that was given up"},
		{Key: GeneratedFromAnnotation, Form: "`KIND/NAME`", Default: "written by hand",
			Effect: "what made the Application; without effect"},
	}
	for i := range names {
		names[i].On, names[i].Writer = onApplication, ByUser
	}
	return names
}

// DataKeys returns the keys of the data of an Application.
func DataKeys() []Name {
	names := []Name{
		{Key: ManifestKey, Writer: ByUser, Form: "YAML, of several documents perhaps, or JSON", Effect: "the resources"},
		{Key: ObserverSchemaKey, Writer: ByUser, Form: "YAML or JSON, an entry for each resource that has one", Default: "every field of the manifest, and nothing else",
			Effect: "the fields that must stay as they are"},
		{Key: ToscaKey, Writer: ByUser, Form: "a TOSCA template, or its URL", Effect: "is translated where there is no manifest: docs/tosca.md"},
		{Key: CSARKey, Writer: ByUser, Form: "a CSAR archive in `binaryData`, or its URL", Effect: "is translated where there is neither manifest nor template"},
		{Key: MangledSchemaKey, Writer: ByWebhook, Form: "JSON", Effect: "the observer schema of each resource, as it is meant. The agent writes it where the resources are behind a URL"},
		{Key: TranslatedKey, Writer: ByWebhook, Form: "JSON", Effect: "the manifest that template or archive were translated to. The agent writes it where they are behind a URL"},
		{Key: LastAppliedKey, Writer: ByWebhook, Form: "JSON", Effect: "what is desired, with what was learned. The agent writes it when it learns"},
		{Key: LearnedKey, Writer: ByAgentOfTarget, Form: "JSON", Effect: "observed values that the manifest does not say, and the API server has given"},
		{Key: LastObservedKey, Writer: ByAgentOfTarget, Form: "JSON", Effect: "the observed fields as they were seen last"},
		{Key: StatusKey, Writer: ByAgentOfTarget, Form: "JSON", Effect: "state, conditions, health of the objects, addresses of Services, the last drifts"},
		{Key: InventoryKey(ClusterPart), Writer: ByAgent, Form: "JSON", Effect: "what the cluster holds, written before it is created there"},
	}
	for i := range names {
		names[i].On = onApplication
	}
	return names
}

// Labels returns all labels of this project.
func Labels() []Name {
	return []Name{
		{Key: ClusterLabel, On: onApplication, Writer: ByWebhook, Form: "the name of a cluster", Effect: "for people: `kubectl get configmaps -l krake.dev/cluster`"},
		{Key: StateLabel, On: onApplication, Writer: ByAgentOfTarget, Form: "a state", Effect: "for people: `-L krake.dev/state`"},
		{Key: HolderLabel(ClusterPart), On: onApplication, Writer: ByWebhook, Values: []string{"true"},
			Effect: "the cluster holds objects of the Application, or is to: its agent selects by it, and takes it off at the end"},
		{Key: OwnedByLabel, On: onObject, Writer: ByAgent, Form: "16 hexadecimal digits", Effect: "finds the objects of Applications; an index, no proof"},
		{Key: AggregateLabel, On: "ClusterRole", Writer: ByAdministrator, Values: []string{"true"}, Effect: "its rights are the agents': docs/permissions.md"},
		{Key: EnrolmentLabel, On: "what `kubectl krake enrol` makes on the hub", Writer: ByAdministrator, Form: "the name of a cluster", Effect: "`kubectl krake remove` finds it by that"},
	}
}

// Finalizers returns all finalizers of this project.
func Finalizers() []Name {
	return []Name{{
		Key: Finalizer(ClusterPart), On: onApplication, Writer: ByAgent,
		Effect: "keeps a deleted Application until the cluster's agent has deleted its objects",
	}}
}

// StateMeaning is a state with what it means.
type StateMeaning struct {
	State   State
	Meaning string
}

// States returns all states that an agent writes.
func States() []StateMeaning {
	return []StateMeaning{
		{StateCreating, "suspended, or the cluster is silent, before anything was created"},
		{StateTranslating, "what is behind its URL was not fetched yet"},
		{StateRunning, "all objects are there, and what they run is"},
		{StateRestarting, "a workload starts Pods again"},
		{StateDegraded, "a workload has fewer ready Pods than it wants, an object is missing, or the shutdown was given up"},
		{StateCompleted, "all workloads have ended well"},
		{StateFailed, "a workload has failed, or the Application could not be carried out: `Ready` says why"},
		{StateMigrating, "on its way to another cluster"},
		{StateWaiting, "it was asked to shut down"},
		{StateReady, "it has shut down, and goes"},
		{StateDeleting, "it is deleted, and its objects are going"},
	}
}
