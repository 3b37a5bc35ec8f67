package checker

import (
	"encoding/json"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

type object = map[string]any

// AuditPolicy records every write with its answer, and the fact of every read. It
// leaves out Leases, and the reads of the control plane.
const AuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: None
  resources:
  - {group: coordination.k8s.io}
  - {group: authorization.k8s.io}
  - {group: authentication.k8s.io}
  - {group: discovery.k8s.io}
- level: None
  verbs: [get, list, watch]
  userGroups: ["system:masters", "system:nodes", "system:serviceaccounts:kube-system"]
- level: None
  verbs: [get, list, watch]
  users: ["system:kube-controller-manager", "system:apiserver"]
- level: Metadata
  verbs: [get, list, watch]
- level: Metadata
  nonResourceURLs: ["*"]
- level: RequestResponse
`

// Request is a request that the API server has answered.
type Request = kit.Request

func shortOf(user string) string { return strings.TrimPrefix(user, "system:serviceaccount:") }

// isWork reports whether a request writes an object itself, and is not an Event.
func isWork(r *Request) bool { return isWrite(r) && r.Object.Resource != "events" }

func isWrite(r *Request) bool { return r.IsWrite() && r.Object.Resource != "" }

// key identifies an object by its place.
type key struct{ group, resource, namespace, name string }

func (k key) String() string { return k.resource + " " + k.namespace + "/" + k.name }

func keyOf(r *Request) key {
	return key{r.Object.Group, r.Object.Resource, r.Object.Namespace, r.Name()}
}

// answerOf returns the object after the request, as the API server answered. It is nil
// if the answer is not an object.
func answerOf(r *Request) object {
	var answer object
	if !r.IsAccepted() || utiljson.Unmarshal(r.Answer, &answer) != nil || answer["kind"] == "Status" {
		return nil
	}
	return answer
}

// deletedBy returns the UID of the object that a request removed at once, or the empty
// string.
func deletedBy(r *Request) string {
	var answer struct {
		Kind    string `json:"kind"`
		Details struct {
			UID string `json:"uid"`
		} `json:"details"`
	}
	if r.Verb != "delete" || !r.IsAccepted() || json.Unmarshal(r.Answer, &answer) != nil {
		return ""
	}
	return answer.Details.UID
}

// agentOf returns the cluster whose agent is the user.
func agentOf(user string) (cluster string, ok bool) {
	return strings.CutPrefix(user, "system:serviceaccount:"+application.AgentsNamespace+":")
}
