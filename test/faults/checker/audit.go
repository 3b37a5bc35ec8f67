package checker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/krake-observer/krake-observer/pkg/application"
)

type object = map[string]any

// AuditPolicy has every write in the log with its answer, and what is read without.
// Leases, and what the control plane reads, are left out.
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
type Request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Impersonated struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Body   json.RawMessage `json:"requestObject"`
	Answer json.RawMessage `json:"responseObject"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Ended       time.Time         `json:"stageTimestamp"`
}

// Read gives the requests of an audit log's lines that any of the words is in, in
// the order in which they were answered.
func Read(lines func(take func(line []byte) error) error, words ...string) ([]Request, error) {
	var requests []Request
	err := lines(func(line []byte) error {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(string(line), word) }) {
			return nil
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if r.Stage == "ResponseComplete" {
			requests = append(requests, r)
		}
		return nil
	})
	return requests, err
}

// String gives "15:04:05.000 USER delete services ns/name -> 200".
func (r *Request) String() string {
	resource := r.Object.Resource
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return fmt.Sprintf("%s %s %s %s %s/%s -> %d", r.Received.Format("15:04:05.000"), shortOf(r.by()), r.Verb, resource,
		r.Object.Namespace, r.name(), r.Status.Code)
}

func shortOf(user string) string { return strings.TrimPrefix(user, "system:serviceaccount:") }

// by is who is responsible, whomever it acts as.
func (r *Request) by() string { return r.User.Username }

func (r *Request) isWrite() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && r.Object.Resource != ""
}

func (r *Request) isAccepted() bool {
	return r.Status.Code >= http.StatusOK && r.Status.Code < http.StatusMultipleChoices
}

// isWork tells of a write that tells nobody anything, and is about an object itself.
func (r *Request) isWork() bool { return r.isWrite() && r.Object.Resource != "events" }

// name is that of the object, also where the request does not say it in its path.
func (r *Request) name() string {
	if r.Object.Name != "" {
		return r.Object.Name
	}
	var body struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return ""
	}
	return body.Metadata.Name
}

// key identifies an object by its place.
type key struct{ group, resource, namespace, name string }

func (k key) String() string { return k.resource + " " + k.namespace + "/" + k.name }

func (r *Request) key() key {
	return key{r.Object.Group, r.Object.Resource, r.Object.Namespace, r.name()}
}

// answer gives the object as the API server had it after the request, and nil if it
// answered with something else.
func (r *Request) answer() object {
	var answer object
	if !r.isAccepted() || utiljson.Unmarshal(r.Answer, &answer) != nil || answer["kind"] == "Status" {
		return nil
	}
	return answer
}

// deleted gives the UID of what a deletion has removed at once, if it has.
func (r *Request) deleted() string {
	var answer struct {
		Kind    string `json:"kind"`
		Details struct {
			UID string `json:"uid"`
		} `json:"details"`
	}
	if r.Verb != "delete" || !r.isAccepted() || json.Unmarshal(r.Answer, &answer) != nil {
		return ""
	}
	return answer.Details.UID
}

// agentOf gives the cluster whose agent is the user.
func agentOf(user string) (cluster string, ok bool) {
	return strings.CutPrefix(user, "system:serviceaccount:"+application.AgentsNamespace+":")
}
