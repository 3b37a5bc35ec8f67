package main

import "github.com/krake-observer/krake-observer/pkg/application"

// clusterPart stands for the name of a cluster in an [ownName].
const clusterPart = "CLUSTER"

// writer is who may write under a name of this project. The admission policies enforce it.
type writer string

// The writers.
const (
	byUser    writer = "user"
	byWebhook writer = "webhook"
	byAgent   writer = "agent"
	// byAgentOfTarget is the agent of the target cluster alone.
	byAgentOfTarget writer = "agent of the target cluster"
	byAdministrator writer = "administrator"
)

// ownName is a name of this project, as the page describes it.
type ownName struct {
	// Key is the name, with [clusterPart] in place of a cluster's name.
	Key string
	// On is what has the name, in words.
	On     string
	Writer writer
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

// annotationNames returns all annotations of this project.
func annotationNames() []ownName {
	return append(userAnnotations(), []ownName{
		{Key: application.HoldUntilAnnotation, On: onObject, Writer: byUser, Form: "a time as in RFC 3339", Default: "no hold",
			Effect: "the same for one object, for as long as the agent's `--max-hold` allows, from when it was first seen"},
		{Key: application.HeldByAnnotation, On: onApplication, Writer: byWebhook, Form: "the name of a user", Default: "no user holds it back",
			Effect: "who set mode or hold"},
		{Key: application.SignatureAnnotation, On: onApplication, Writer: byWebhook, Form: "`KEY.SIGNATURE`", Default: "no agent carries the Application out",
			Effect: "proves to agents that the webhook has admitted the Application as it is"},
		{Key: application.OwnerAnnotation, On: onObject, Writer: byAgent, Form: "`NAMESPACE/NAME GROUP/KIND/NAMESPACE/NAME`", Default: "belongs to no Application",
			Effect: "proof: which Application this very object belongs to"},
		{Key: application.OwnerUIDAnnotation, On: onObject, Writer: byAgent, Form: "a UID", Default: "belongs to no Application",
			Effect: "proof, with the former: the UID of that Application"},
		{Key: application.TargetAnnotation, On: "Lease on the hub", Writer: byAgent, Form: "a UID", Default: "bound to no target yet",
			Effect: "the target that has the name of the cluster: the UID of its namespace kube-system"},
		{Key: application.TargetLeaseAnnotation, On: "Lease on the hub", Writer: byAgent, Form: "a UID", Default: "bound to no target yet",
			Effect: "the UID of the Lease on the target by which one replica acts"},
		{Key: application.ShardsAnnotation, On: "Lease on the target", Writer: byAgent, Form: "a number", Default: "the agent has one shard",
			Effect: "among how many replicas the Applications are divided"},
		{Key: application.ShardsBeforeAnnotation, On: "Lease on the target", Writer: byAgent, Form: "a number", Default: "no other number is in use",
			Effect: "the number changes: the replica waits for those that may still divide the Applications among so many"},
	}...)
}

// userAnnotations are the annotations that users write on Applications.
func userAnnotations() []ownName {
	names := []ownName{
		{Key: application.FormatAnnotation, Values: []string{application.Format}, Default: "a plain ConfigMap",
			Effect: "makes the ConfigMap an Application, of this format version"},
		{Key: application.ClusterAnnotation, Form: "the name of a cluster", Default: application.LocalCluster,
			Effect: "the cluster where the objects are to be; changed, it moves the Application"},
		{Key: application.ModeAnnotation, Values: []string{string(application.Enforce), string(application.Observe), string(application.Suspend)}, Default: string(application.Enforce),
			Effect: "`observe`: drift is reported, and nothing is written to the cluster; `suspend`: the agent does not look at the objects"},
		{Key: application.HoldUntilAnnotation, Form: "a time as in RFC 3339", Default: "no hold",
			Effect: "drift is recorded and not reverted until then, and repaired automatically afterwards"},
		{Key: application.HoldAnnotation, Values: []string{"deny"}, Default: "holds on objects count",
			Effect: "holds on single objects do not count"},
		{Key: application.GuardAnnotation, Values: []string{string(application.GuardWarn), string(application.GuardDeny), string(application.GuardOff)}, Default: string(application.GuardWarn),
			Effect: "what the guard of the cluster does about a request whose changes the agent would revert: docs/guard.md"},
		{Key: application.ValuesFromAnnotation, Form: "`[NAMESPACE/]SECRET=SOURCE`, with commas between several", Default: "a Secret has no values",
			Effect: "Secrets of the manifest get the values of other Secrets, which the Application's service account reads: docs/applications.md"},
		{Key: application.AdoptAnnotation, Values: []string{"true", "false"}, Default: "false",
			Effect: "takes over objects that exist already and belong to no Application"},
		{Key: application.AfterAnnotation, Form: "names of Applications of the namespace, at most 16, with commas between", Default: "begin at once",
			Effect: "nothing is created before these Applications are ready on the same cluster"},
		{Key: application.DeletionPolicyAnnotation, Values: []string{string(application.Delete), string(application.Orphan)}, Default: "delete, but for adopted objects and definitions of kinds",
			Effect: "what becomes of the objects of a deleted Application; said to be `delete`, it goes for adopted ones and for definitions, too"},
		{Key: application.ForceDeleteAnnotation, Form: "`true`, `false`, or names of clusters with commas between", Default: "wait for the agents",
			Effect: "gives up on objects: `true` on all of an Application that is being deleted, names on those that these clusters hold"},
		{Key: application.ServiceAccountAnnotation, Form: "the name of a ServiceAccount", Default: "the agent itself; in strict mode " + application.DefaultServiceAccount,
			Effect: "the ServiceAccount of the Application's namespace on the target that writes the objects"},
		{Key: application.HooksAnnotation, Form: "`complete`, `shutdown`, or both with a comma between", Default: "none",
			Effect: "what Pods may tell the agent, and what they are asked: docs/hooks.md"},
		{Key: application.InitContainersAnnotation, Values: []string{"true", "false"}, Default: "false",
			Effect: "init containers get token, URL and certificates of the hooks, too"},
		{Key: application.ShutdownGraceTimeAnnotation, Form: "seconds, or a duration like `90s`; from 1s to 24h", Default: "the agent's `--shutdown-grace-time`",
			Effect: "how long an attempt to shut down may take"},
		{Key: application.ShutdownStrategyAnnotation, Values: []string{string(application.GiveUpShutdown), string(application.DeleteAnyway)}, Default: "the agent's `--shutdown-failure-strategy`",
			Effect: "what to do with an Application that does not confirm its shutdown"},
		{Key: application.ShutdownRetryCountAnnotation, Form: "a number from 0 to 100", Default: "the agent's `--shutdown-retry-count`",
			Effect: "how many attempts follow the first one"},
		{Key: application.ShutdownRetryAnnotation, Form: "any text, another one each time", Default: "no wish",
			Effect: "requests the shutdown again after it was given up"},
		{Key: application.GeneratedFromAnnotation, Form: "`KIND/NAME`", Default: "written by hand",
			Effect: "what made the Application; without effect"},
	}
	for i := range names {
		names[i].On, names[i].Writer = onApplication, byUser
	}
	return names
}

// dataKeyNames returns the keys of the data of an Application.
func dataKeyNames() []ownName {
	names := []ownName{
		{Key: application.ManifestKey, Writer: byUser, Form: "YAML with one or more documents, or JSON", Effect: "the resources"},
		{Key: application.ObserverSchemaKey, Writer: byUser, Form: "YAML or JSON, an entry for each resource that has one", Default: "every field of the manifest, and nothing else",
			Effect: "the fields that must not change"},
		{Key: application.ToscaKey, Writer: byUser, Form: "a TOSCA template, or its URL", Effect: "is translated where there is no manifest: docs/tosca.md"},
		{Key: application.CSARKey, Writer: byUser, Form: "a CSAR archive in `binaryData`, or its URL", Effect: "is translated where there is neither manifest nor template"},
		{Key: application.MangledSchemaKey, Writer: byWebhook, Form: "JSON", Effect: "the complete observer schema of each resource. The agent writes it where the resources are behind a URL"},
		{Key: application.TranslatedKey, Writer: byWebhook, Form: "JSON", Effect: "the manifest that template or archive were translated to. The agent writes it where they are behind a URL"},
		{Key: application.LastAppliedKey, Writer: byWebhook, Form: "JSON", Effect: "what is desired, with what was learned. The agent writes it when it learns"},
		{Key: application.LearnedKey, Writer: byAgentOfTarget, Form: "JSON", Effect: "observed values that are not in the manifest and that the API server has set"},
		{Key: application.LastObservedKey, Writer: byAgentOfTarget, Form: "JSON", Effect: "the observed fields at the last observation"},
		{Key: application.StatusKey, Writer: byAgentOfTarget, Form: "JSON", Effect: "state, conditions, health of the objects, addresses of Services, the last drifts"},
		{Key: application.InventoryKey(clusterPart), Writer: byAgent, Form: "JSON", Effect: "what the cluster holds, written before it is created there"},
	}
	for i := range names {
		names[i].On = onApplication
	}
	return names
}

// labelNames returns all labels of this project.
func labelNames() []ownName {
	return []ownName{
		{Key: application.ClusterLabel, On: onApplication, Writer: byWebhook, Form: "the name of a cluster", Effect: "for people: `kubectl get configmaps -l krake.dev/cluster`"},
		{Key: application.StateLabel, On: onApplication, Writer: byAgentOfTarget, Form: "a state", Effect: "for people: `-L krake.dev/state`"},
		{Key: application.HolderLabel(clusterPart), On: onApplication, Writer: byWebhook, Values: []string{"true"},
			Effect: "the cluster has, or is to have, objects of the Application: its agent selects by the label, and removes it at the end"},
		{Key: application.OwnedByLabel, On: onObject, Writer: byAgent, Form: "16 hexadecimal digits", Effect: "finds the objects of Applications; an index, no proof"},
		{Key: application.AggregateLabel, On: "ClusterRole", Writer: byAdministrator, Values: []string{"true"}, Effect: "agents get its rights: docs/permissions.md"},
		{Key: application.EnrolmentLabel, On: "what `kubectl krake enrol` makes on the hub", Writer: byAdministrator, Form: "the name of a cluster", Effect: "`kubectl krake remove` finds the object by this label"},
	}
}

// finalizerNames returns all finalizers of this project.
func finalizerNames() []ownName {
	return []ownName{{
		Key: application.Finalizer(clusterPart), On: onApplication, Writer: byAgent,
		Effect: "keeps a deleted Application until the cluster's agent has deleted its objects",
	}}
}

// stateMeanings are those of the states that an agent writes.
func stateMeanings() map[application.State]string {
	return map[application.State]string{
		application.StateCreating:    "suspended, or the cluster is silent, before anything was created",
		application.StateTranslating: "what is behind its URL was not fetched yet",
		application.StateRunning:     "all objects are there, and what they run is",
		application.StateRestarting:  "a workload starts Pods again",
		application.StateDegraded:    "a workload has fewer ready Pods than it wants, an object is missing, or the shutdown was given up",
		application.StateCompleted:   "all workloads have ended well",
		application.StateFailed:      "a workload has failed, or the Application could not be carried out: `Ready` says why",
		application.StateMigrating:   "on its way to another cluster",
		application.StateWaiting:     "it was asked to shut down",
		application.StateReady:       "it has shut down, and goes",
		application.StateDeleting:    "it is deleted, and its objects are going",
	}
}
