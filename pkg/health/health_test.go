package health_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/krake-observer/krake-observer/pkg/health"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

type object = map[string]any

func decode(t testing.TB, yaml string) object {
	t.Helper()
	documents, err := manifest.Decode([]byte(yaml))
	check.Must(t, err)
	return documents[0].(object)
}

// workload is the health of an object that runs Pods.
func workload(status health.Status, message string, state health.State, pods health.Pods) health.Health {
	return health.Health{Status: status, Message: message, Workload: true, State: state, Pods: pods}
}

// example is a live object with its health.
type example struct {
	why, live string
	want      health.Health
}

// examples returns all examples.
func examples() []example { return slices.Concat(workloads, jobs, bare, others) }

// The figures are those that the controllers of Kubernetes write. They omit most zeros.
var workloads = []example{
	{"a Deployment as it is most of the time", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 2}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  observedGeneration: 2
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 3
  availableReplicas: 3
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability.}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: ReplicaSet "web-1" has successfully progressed.}`,
		workload(health.StatusCurrent, "Deployment is available. Replicas: 3", health.StateRunning, health.Pods{Desired: 3, Running: 3})},
	{"what is desired is in the spec: Krake takes status.replicas, and saw nothing missing here", `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 3}
spec: {replicas: 3}
status: {observedGeneration: 3, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
		workload(health.StatusInProgress, "Replicas: 1/3", health.StateDegraded, health.Pods{Desired: 3, Running: 1})},
	{"a Deployment that no controller has seen yet; one Pod is the default", `
{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {}, status: {}}`,
		workload(health.StatusInProgress, "Replicas: 0/1", health.StateDegraded, health.Pods{Desired: 1})},
	{"a Deployment that is scaled to nothing is well", `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 2}
spec: {replicas: 0, progressDeadlineSeconds: 600}
status:
  observedGeneration: 2
  conditions:
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: ReplicaSet "web-1" has successfully progressed.}
  - {type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability.}`,
		workload(health.StatusCurrent, "Deployment is available. Replicas: 0", health.StateRunning, health.Pods{})},
	{"a rollout runs one Pod too many for a while", `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3}`,
		workload(health.StatusInProgress, "Pending termination: 1", health.StateDegraded, health.Pods{Desired: 2, Running: 3})},
	{"all Pods are ready, but they are those of before the change", `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 5}
spec: {replicas: 1}
status: {observedGeneration: 4, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
		workload(health.StatusInProgress, "Deployment generation is 5, but latest observed generation is 4", health.StateDegraded, health.Pods{Desired: 1, Running: 1})},
	{"a rollout that was given up is a failure, although the old Pods go on", `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 2}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  observedGeneration: 2
  replicas: 2
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: 1
  unavailableReplicas: 1
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability.}
  - {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: ReplicaSet "web-2" has timed out progressing.}`,
		workload(health.StatusFailed, "Progress deadline exceeded", health.StateFailed, health.Pods{Desired: 1, Running: 1})},
	{"somebody deletes it, in the foreground", `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 3, deletionTimestamp: "2026-01-02T15:04:05Z", finalizers: [foregroundDeletion]}
spec: {replicas: 1}
status: {observedGeneration: 3, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
		workload(health.StatusTerminating, "its deletion waits for its finalizers foregroundDeletion", health.StateDegraded, health.Pods{Desired: 1, Running: 1})},
	{"a StatefulSet", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {generation: 1}
spec: {replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: db-1, updateRevision: db-1, collisionCount: 0}`,
		workload(health.StatusCurrent, "Partition rollout complete. updated: 2", health.StateRunning, health.Pods{Desired: 2, Running: 2})},
	{"kstatus looks at no Pod of a StatefulSet that is updated by hand", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {generation: 1}
spec: {replicas: 3, updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 1, availableReplicas: 1, collisionCount: 0}`,
		workload(health.StatusInProgress, "Ready: 1/3", health.StateDegraded, health.Pods{Desired: 3, Running: 1})},
	{"a ReplicaSet of one's own", `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1}`,
		workload(health.StatusInProgress, "Available: 1/2", health.StateDegraded, health.Pods{Desired: 2, Running: 1})},
	{"kstatus does not know ReplicationControllers", `
apiVersion: v1
kind: ReplicationController
metadata: {generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2}`,
		workload(health.StatusInProgress, "Ready: 0/2", health.StateDegraded, health.Pods{Desired: 2})},
	{"the nodes decide how many Pods a DaemonSet wants; Krake swaps the two", `
apiVersion: apps/v1
kind: DaemonSet
metadata: {generation: 1}
status: {observedGeneration: 1, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberMisscheduled: 0, numberReady: 2, numberAvailable: 2, numberUnavailable: 1, updatedNumberScheduled: 3}`,
		workload(health.StatusInProgress, "Available: 2/3", health.StateDegraded, health.Pods{Desired: 3, Running: 2})},
	{"a DaemonSet that no controller has seen yet has the same zeros", `
apiVersion: apps/v1
kind: DaemonSet
metadata: {generation: 1}
status: {currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0}`,
		workload(health.StatusInProgress, "DaemonSet status.observedGeneration not found", health.StateDegraded, health.Pods{})},
	{"a CronJob runs nothing itself", `
{apiVersion: batch/v1, kind: CronJob, metadata: {generation: 1}, spec: {schedule: "* * * * *"}, status: {active: [{kind: Job, name: a-1}]}}`,
		health.Health{Status: health.StatusCurrent, Message: "Resource is always ready", State: health.StateRunning}},
}

var jobs = []example{
	{"a Job that runs; a Pod that failed is tried again", `
apiVersion: batch/v1
kind: Job
metadata: {generation: 1}
spec: {completions: 5, parallelism: 2, backoffLimit: 6, suspend: false}
status: {startTime: "2026-01-02T15:04:05Z", active: 2, ready: 1, succeeded: 2, failed: 1, terminating: 0, uncountedTerminatedPods: {}}`,
		workload(health.StatusCurrent, "Job in progress. success:2, active: 2, failed: 1", health.StateRunning, health.Pods{Desired: 5, Running: 2, Completed: 2, Failed: 1})},
	{"a Job that is done; Krake wants completions to be set, too", `
apiVersion: batch/v1
kind: Job
spec: {}
status:
  startTime: "2026-01-02T15:04:05Z"
  completionTime: "2026-01-02T15:05:05Z"
  succeeded: 1
  conditions:
  - {type: SuccessCriteriaMet, status: "True", reason: CompletionsReached, message: Reached expected number of succeeded pods}
  - {type: Complete, status: "True", reason: CompletionsReached, message: Reached expected number of succeeded pods}`,
		workload(health.StatusCurrent, "Job Completed. succeeded: 1/1", health.StateCompleted, health.Pods{Desired: 1, Completed: 1})},
	{"a Job that has given up", `
apiVersion: batch/v1
kind: Job
spec: {completions: 2, backoffLimit: 1}
status:
  startTime: "2026-01-02T15:04:05Z"
  succeeded: 1
  failed: 2
  conditions:
  - {type: FailureTarget, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}
  - {type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}`,
		workload(health.StatusFailed, "Job Failed. failed: 2/2", health.StateFailed, health.Pods{Desired: 2, Completed: 1, Failed: 2})},
	{"a suspended Job is as somebody wants it, though kstatus waits for it to start", `
apiVersion: batch/v1
kind: Job
spec: {suspend: true}
status: {conditions: [{type: Suspended, status: "True", reason: JobSuspended, message: Job suspended}]}`,
		workload(health.StatusCurrent, "Job is suspended", health.StateRunning, health.Pods{Desired: 1})},
	{"a Job that was done before somebody suspended it", `
apiVersion: batch/v1
kind: Job
spec: {completions: 1, suspend: true}
status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}`,
		workload(health.StatusCurrent, "Job Completed. succeeded: 1/1", health.StateCompleted, health.Pods{Desired: 1, Completed: 1})},
	{"that a Job is suspended says nothing of one that cannot be read", `
{apiVersion: batch/v1, kind: Job, spec: {suspend: true}, status: {conditions: none}}`,
		workload(health.StatusUnknown, unreadable, health.StateRunning, health.Pods{Desired: 1})},
	{"a Job that no controller has seen yet", `
{apiVersion: batch/v1, kind: Job, spec: {completions: 1}, status: {}}`,
		workload(health.StatusInProgress, "Job not started", health.StateDegraded, health.Pods{Desired: 1})},
}

var bare = []example{
	{"a Pod that is ready, whatever it went through before", `
apiVersion: v1
kind: Pod
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "True"}]
  containerStatuses: [{name: web, ready: true, restartCount: 7, state: {running: {startedAt: "2026-01-02T15:04:05Z"}}}]`,
		workload(health.StatusCurrent, "Pod is Ready", health.StateRunning, health.Pods{Desired: 1, Running: 1})},
	{"a Pod that starts; here Krake's observer crashes", `
{apiVersion: v1, kind: Pod, status: {phase: Pending, qosClass: BestEffort}}`,
		workload(health.StatusInProgress, "Pod is in the Pending phase", health.StateDegraded, health.Pods{Desired: 1})},
	{"a container that crashes again and again", `
apiVersion: v1
kind: Pod
status:
  phase: Running
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [web]"}]
  containerStatuses:
  - {name: proxy, ready: true, restartCount: 0, state: {running: {}}}
  - {name: web, ready: false, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off 1m20s restarting failed container}}, lastState: {terminated: {exitCode: 1, reason: Error}}}`,
		workload(health.StatusFailed, "Containers in CrashLoop state: web", health.StateRestarting, health.Pods{Desired: 1})},
	{"between two crashes it runs", `
apiVersion: v1
kind: Pod
status:
  phase: Running
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]
  containerStatuses: [{name: web, ready: false, restartCount: 2, state: {running: {}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]`,
		workload(health.StatusInProgress, "Pod is running but is not Ready", health.StateRestarting, health.Pods{Desired: 1})},
	{"a container that crashes before the others start", `
apiVersion: v1
kind: Pod
status:
  phase: Pending
  initContainerStatuses: [{name: migrate, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}]
  containerStatuses: [{name: web, ready: false, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]`,
		workload(health.StatusInProgress, "Pod is in the Pending phase", health.StateRestarting, health.Pods{Desired: 1})},
	{"an image that is not there is worse than a container that crashes", `
apiVersion: v1
kind: Pod
status:
  phase: Pending
  containerStatuses:
  - {name: web, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}
  - {name: log, ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image}}}`,
		workload(health.StatusInProgress, "Pod is in the Pending phase", health.StateDegraded, health.Pods{Desired: 1})},
	{"restarts do not matter where the image is gone meanwhile", `
apiVersion: v1
kind: Pod
status:
  phase: Running
  conditions: [{type: Ready, status: "False"}]
  containerStatuses: [{name: web, ready: false, restartCount: 3, state: {waiting: {reason: ErrImagePull}}}]`,
		workload(health.StatusInProgress, "Pod is running but is not Ready", health.StateDegraded, health.Pods{Desired: 1})},
	{"kstatus and we agree on a Pod whose phase and condition do not", `
{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: Ready, status: "True"}]}}`,
		workload(health.StatusInProgress, "Pod is in the Pending phase", health.StateDegraded, health.Pods{Desired: 1})},
	{"a Pod that has done its work", `
apiVersion: v1
kind: Pod
status:
  phase: Succeeded
  conditions: [{type: Ready, status: "False", reason: PodCompleted}]
  containerStatuses: [{name: web, ready: false, restartCount: 1, state: {terminated: {exitCode: 0, reason: Completed}}}]`,
		workload(health.StatusCurrent, "Pod has completed successfully", health.StateCompleted, health.Pods{Desired: 1, Completed: 1})},
	{"to kstatus a Pod that failed is as good as one that did not", `
{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted, message: "The node was low on resource: memory."}}`,
		workload(health.StatusFailed, "Pod has completed, but not successfully", health.StateFailed, health.Pods{Desired: 1, Failed: 1})},
	{"the node is gone, and with it what the kubelet would say", `
{apiVersion: v1, kind: Pod, status: {phase: Unknown}}`,
		workload(health.StatusUnknown, unreadable, health.StateDegraded, health.Pods{Desired: 1})},
	{"kstatus calls it failed when it has waited for 15 seconds; then no event comes", `
apiVersion: v1
kind: Pod
metadata: {creationTimestamp: "2020-01-02T15:04:05Z"}
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]`,
		workload(health.StatusInProgress, "Pod could not be scheduled", health.StateDegraded, health.Pods{Desired: 1})},
	{"a gate holds the Pod back on purpose", `
apiVersion: v1
kind: Pod
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}`,
		workload(health.StatusInProgress, "Pod is in the Pending phase", health.StateDegraded, health.Pods{Desired: 1})},
	{"a Pod that is deleted may be ready to the end", `
apiVersion: v1
kind: Pod
metadata: {deletionTimestamp: "2026-01-02T15:04:05Z"}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`,
		workload(health.StatusTerminating, "Resource scheduled for deletion", health.StateDegraded, health.Pods{Desired: 1, Running: 1})},
}

const unreadable = "a field that kstatus reads is of a type that it does not expect"

var others = []example{
	{"what runs nothing is well", `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}`,
		health.Health{Status: health.StatusCurrent, Message: "Resource is always ready", State: health.StateRunning}},
	{"a claim that waits for a volume", `
{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`,
		health.Health{Status: health.StatusInProgress, Message: "PVC is not Bound. phase: Pending", State: health.StateDegraded}},
	{"a Deployment of another group runs nothing that we know of", `
{apiVersion: example.org/v1, kind: Deployment, spec: {replicas: 3}, status: {readyReplicas: 1}}`,
		health.Health{Status: health.StatusCurrent, Message: "Resource is current", State: health.StateRunning}},
	{"a custom resource that has conditions: its reason is told, and nothing of the text", `
apiVersion: example.org/v1
kind: Database
status:
  conditions:
  - {type: Synced, status: "True", reason: Synced, message: cannot log in as root:hunter2}
  - {type: Ready, status: "False", reason: Login_Failed, message: cannot log in as root:hunter2}`,
		health.Health{Status: health.StatusInProgress, Message: "Ready is False: Login_Failed", State: health.StateDegraded}},
	{"a custom resource that gave up; a reason that is none is not told", `
apiVersion: example.org/v1
kind: Database
status:
  conditions: [{type: Stalled, status: "True", reason: root has no password hunter2, message: ""}]`,
		health.Health{Status: health.StatusFailed, Message: "Stalled is True", State: health.StateFailed}},
	{"one that is ready", `
apiVersion: example.org/v1
kind: Database
status: {conditions: [{type: Ready, status: "True", reason: Available, message: hunter2}]}`,
		health.Health{Status: health.StatusCurrent, Message: "Resource is Ready", State: health.StateRunning}},
	{"names that another definition has", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
status: {conditions: [{type: NamesAccepted, status: "False", reason: ListKindConflict, message: '"DatabaseList" is already in use'}]}`,
		health.Health{Status: health.StatusFailed, Message: "NamesAccepted is False: ListKindConflict", State: health.StateFailed}},
	{"conditions of a shape of their own: nothing bad is known, and no value is told", `
{apiVersion: example.org/v1, kind: Database, status: {conditions: {password: hunter2}}}`,
		health.Health{Status: health.StatusUnknown, Message: unreadable, State: health.StateRunning}},
	{"somebody deletes it, and a finalizer holds it", `
{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2026-01-02T15:04:05Z", finalizers: [example.org/keep]}}`,
		health.Health{Status: health.StatusTerminating, Message: "its deletion waits for its finalizers example.org/keep", State: health.StateDegraded}},
}

func TestOf(t *testing.T) {
	for _, c := range examples() {
		t.Run(c.why, func(t *testing.T) {
			live := decode(t, c.live)
			check.Equal(t, "health", c.want, health.Of(live))
			check.Equal(t, "the object afterwards", decode(t, c.live), live)
		})
	}
}

// A Job with a TTL has an end, and is done while its cluster deletes it. Neither holds for another object.
func TestEnd(t *testing.T) {
	job := func(spec, metadata object, condition string) object {
		return object{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": object{
			"succeeded": int64(1), "conditions": []any{object{"type": condition, "status": "True"}},
		}}
	}
	ttl := object{"ttlSecondsAfterFinished": int64(0)}
	deleted := object{"deletionTimestamp": "2026-01-02T15:04:05Z", "finalizers": []any{"foregroundDeletion"}}
	for why, c := range map[string]struct {
		live   object
		end    health.State
		status health.Status
		state  health.State
	}{
		"complete":                {job(ttl, nil, "Complete"), health.StateCompleted, health.StatusCurrent, health.StateCompleted},
		"complete, and deleted":   {job(ttl, deleted, "Complete"), health.StateCompleted, health.StatusCurrent, health.StateCompleted},
		"failed":                  {job(ttl, nil, "Failed"), health.StateFailed, health.StatusFailed, health.StateFailed},
		"failed, and deleted":     {job(ttl, deleted, "Failed"), health.StateFailed, health.StatusFailed, health.StateFailed},
		"about to complete":       {job(ttl, nil, "SuccessCriteriaMet"), "", health.StatusInProgress, health.StateDegraded},
		"deleted while it runs":   {job(ttl, deleted, "Suspended"), "", health.StatusTerminating, health.StateDegraded},
		"complete, without a TTL": {job(object{}, nil, "Complete"), "", health.StatusCurrent, health.StateCompleted},
		"deleted, without a TTL":  {job(object{"ttlSecondsAfterFinished": nil}, deleted, "Complete"), "", health.StatusTerminating, health.StateDegraded},
		"another kind with a TTL": {object{"apiVersion": "example.org/v1", "kind": "Job", "spec": ttl, "status": object{"conditions": []any{object{"type": "Complete", "status": "True"}}}}, "", health.StatusCurrent, health.StateRunning},
		"a spec of another shape": {object{"apiVersion": "batch/v1", "kind": "Job", "spec": "hunter2"}, "", health.StatusInProgress, health.StateDegraded},
	} {
		got := health.Of(c.live)
		check.Equal(t, why, []any{c.end, c.status, c.state}, []any{got.End, got.Status, got.State})
	}
}

func TestOfNothing(t *testing.T) {
	want := health.Health{Status: health.StatusCurrent, Message: "Resource is current", State: health.StateRunning}
	for _, live := range []object{nil, {}} {
		check.Equal(t, "health", want, health.Of(live))
	}
}

// A Pod may have hundreds of containers, and a character several bytes.
func TestMessagesAreBounded(t *testing.T) {
	for _, name := range []string{"web", "wäb", "w世b"} {
		statuses := make([]any, 500)
		for i := range statuses {
			statuses[i] = object{"name": name, "state": object{"waiting": object{"reason": "CrashLoopBackOff"}}}
		}
		live := object{"apiVersion": "v1", "kind": "Pod", "status": object{"phase": "Running", "containerStatuses": statuses}}
		got := health.Of(live).Message
		if len(got) > health.MaxMessage || len(got) < health.MaxMessage-3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
