package checker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	user  = "jane"
	agent = "system:serviceaccount:krake-agents:local"
	other = "system:serviceaccount:krake-agents:east"
)

var (
	web   = types.NamespacedName{Namespace: "demo", Name: "web"}
	rival = types.NamespacedName{Namespace: "demo", Name: "rival"}
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

// tape is an audit log written by hand: each request takes a second.
type tape struct {
	t *testing.T
	Case

	now     time.Time
	version int
	live    map[string]object // by kind, namespace and name
}

func newTape(t *testing.T) *tape {
	return &tape{t: t, now: start, live: map[string]object{}, Case: Case{
		Lag: 5 * time.Second, Settled: map[types.NamespacedName]time.Time{},
		Places: map[string][]string{"local": {"demo"}, "east": {"demo-east"}},
	}}
}

func placeOf(o object) string {
	return strings.ToLower(text(o, "kind")) + " " + text(o, "metadata", "namespace") + "/" + text(o, "metadata", "name")
}

// request records a request about an object, with its answer.
func (c *tape) request(by, verb string, o, answer object, code int) *Request {
	c.now = c.now.Add(time.Second)
	r := Request{Stage: "ResponseComplete", Verb: verb, Received: c.now, Ended: c.now.Add(10 * time.Millisecond)}
	r.User.Username, r.Status.Code = by, code
	r.Object.Resource, r.Object.Namespace = strings.ToLower(text(o, "kind"))+"s", text(o, "metadata", "namespace")
	r.Object.Name = text(o, "metadata", "name")
	if verb == "create" {
		r.Object.Name = "" // as in the path
	}
	r.Body, r.Answer = kit.JSON(c.t, o), kit.JSON(c.t, answer)
	c.Requests = append(c.Requests, r)
	return &c.Requests[len(c.Requests)-1]
}

// write creates or changes an object.
func (c *tape) write(by string, o object) {
	c.version++
	place, after := placeOf(o), runtime.DeepCopyJSON(o)
	metadata := fields(after, "metadata")
	metadata["resourceVersion"] = fmt.Sprint(c.version)
	former, verb := c.live[place], "patch"
	if former == nil {
		verb, metadata["uid"] = "create", fmt.Sprintf("uid-%d", c.version)
	} else {
		metadata["uid"] = text(former, "metadata", "uid")
	}
	c.live[place] = after
	c.request(by, verb, o, after, 200)
}

// remove deletes an object.
func (c *tape) remove(by string, o object) {
	c.version++
	uid := text(c.live[placeOf(o)], "metadata", "uid")
	delete(c.live, placeOf(o))
	c.request(by, "delete", o, object{"kind": "Status", "details": object{"uid": uid}}, 200)
}

// basis changes an object as the agent, by a JSON Patch for a version.
func (c *tape) basis(version int, o object) {
	c.write(agent, o)
	patch := []any{object{"op": "replace", "path": "/metadata/resourceVersion", "value": fmt.Sprint(version)}}
	c.Requests[len(c.Requests)-1].Body = kit.JSON(c.t, patch)
}

// app returns an Application with these objects, changed by set.
func app(name types.NamespacedName, set func(o object), objects ...object) object {
	var documents []string
	for _, each := range objects {
		documents = append(documents, encoded(each))
	}
	o := object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"namespace": name.Namespace, "name": name.Name, "annotations": object{application.FormatAnnotation: application.Format}},
		"data":     object{application.ManifestKey: strings.Join(documents, "\n---\n")},
	}
	if set != nil {
		set(o)
	}
	return o
}

// says returns a change to a status that is reconciled, or not.
func says(reconciled bool) func(object) { return saysAll(reconciled, false) }

// saysContended returns a change to a status that is reconciled, and contended or not.
func saysContended(contended bool) func(object) { return saysAll(true, contended) }

func saysAll(reconciled, contended bool) func(object) {
	status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}
	return func(o object) {
		fields(o, "data")[application.StatusKey] = encoded(application.Status{ObservedSpec: digestOf(o), Conditions: []metav1.Condition{
			{Type: application.ReconciledCondition, Status: status[reconciled]}, {Type: application.ReadyCondition, Status: status[reconciled]},
			{Type: application.ContendedCondition, Status: status[contended]},
		}})
	}
}

// saysWith returns a change to a status that is reconciled, with a message.
func saysWith(message string) func(object) {
	return func(o object) {
		says(true)(o)
		var status application.Status
		if err := json.Unmarshal([]byte(text(o, "data", application.StatusKey)), &status); err != nil {
			panic(err) // the test's own value
		}
		status.Conditions[1].Message = message
		fields(o, "data")[application.StatusKey] = encoded(status)
	}
}

func digestOf(o object) string {
	return application.Spec{Manifest: text(o, "data", application.ManifestKey)}.Digest()
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the tests' own values
	}
	return string(text)
}

func annotated(name, value string) func(object) {
	return func(o object) { fields(o, "metadata", "annotations")[name] = value }
}

// isThere moves an Application to the other cluster, with a reconciled status.
func isThere(o object) {
	annotated(application.ClusterAnnotation, "east")(o)
	says(true)(o)
}

// service returns a Service as in a manifest, and marked one with an Application's
// marks.
func service(port int64) object {
	return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "web"}, "spec": object{"ports": []any{object{"port": port}}}}
}

func (c *tape) marked(owner types.NamespacedName, o object, namespace string) object {
	o = runtime.DeepCopyJSON(o)
	fields(o, "metadata")["namespace"] = namespace
	id, err := manifest.Identify(o)
	kit.Must(c.t, err)
	uid := text(c.live["configmap "+owner.String()], "metadata", "uid")
	marks := application.Marks(owner, types.UID(uid), id)
	live := &unstructured.Unstructured{Object: o}
	live.SetLabels(marks.Labels)
	live.SetAnnotations(marks.Annotations)
	return o
}

// sticky returns a Service with a field that no manifest has.
func (c *tape) sticky(o object) object {
	o = c.marked(web, o, "demo")
	fields(o, "spec")["sessionAffinity"] = "ClientIP"
	return o
}

func in(namespace string, o object) object {
	o = runtime.DeepCopyJSON(o)
	fields(o, "metadata")["namespace"] = namespace
	return o
}

// refuse answers the agent's patch of a Service in a namespace with this code.
func (c *tape) refuse(namespace string, code int) *Request {
	return c.request(agent, "patch", in(namespace, service(80)), object{"kind": "Status"}, code)
}

// end judges the tape. These Applications are settled.
func (c *tape) end(settled ...types.NamespacedName) []Violation {
	for _, name := range settled {
		if _, ok := c.Settled[name]; !ok {
			c.Settled[name] = c.now.Add(time.Millisecond)
		}
	}
	c.Until = c.now.Add(time.Hour)
	c.Dump = slices.Collect(maps.Values(c.live))
	return c.Judge()
}

// respec changes the manifest as the user, and nothing else.
func (c *tape) respec(name types.NamespacedName, objects ...object) {
	status := fields(c.live["configmap "+name.String()], "data")[application.StatusKey]
	c.write(user, app(name, func(o object) { fields(o, "data")[application.StatusKey] = status }, objects...))
}

// running records an Application whose Service is carried out.
func running(c *tape) {
	c.write(user, app(web, nil, service(80)))
	c.write(agent, c.marked(web, service(80), "demo"))
	c.write(agent, app(web, says(true), service(80)))
}

// Each history breaks one rule, and no other.
func TestJudge(t *testing.T) {
	cases := []struct {
		why     string
		history func(*tape)
		settled []types.NamespacedName
		want    string // the rule, or none
	}{
		{why: "an Application is carried out", history: running, settled: []types.NamespacedName{web}},
		{why: "it is deleted with its object", settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.remove(user, app(web, nil))
			c.remove(agent, in("demo", service(80)))
		}},
		{why: "it is moved: there first, here then", settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.write(user, app(web, isThere, service(80)))
			c.write(other, c.marked(web, service(80), "demo-east"))
			c.remove(agent, in("demo", service(80)))
		}},
		{why: "an object is not there", want: unreached, settled: []types.NamespacedName{web}, history: func(c *tape) {
			c.write(user, app(web, nil, service(80)))
			c.write(agent, app(web, says(false), service(80)))
		}},
		{why: "it is written although there is nothing to do", want: unreached, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.Settled[web] = c.now.Add(time.Millisecond)
			c.write(agent, app(web, says(true), service(80)))
		}},
		{why: "its rival is forgotten", settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.write(agent, app(web, saysContended(true), service(80)))
			c.Settled[web] = c.now.Add(time.Millisecond)
			c.write(agent, app(web, saysContended(false), service(80)))
		}},
		{why: "its message comes late", settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.Settled[web] = c.now.Add(time.Millisecond)
			c.write(agent, app(web, saysWith("one of two Pods runs"), service(80)))
		}},
		{why: "its message changes again and again", want: unreached, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.Settled[web] = c.now.Add(time.Millisecond)
			c.write(agent, app(web, saysWith("one of two Pods runs"), service(80)))
			c.write(agent, app(web, saysWith("two of two Pods run"), service(80)))
		}},
		{why: "its reason comes late", want: unreached, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.write(agent, app(web, saysContended(false), service(80)))
			c.Settled[web] = c.now.Add(time.Millisecond)
			c.write(agent, app(web, saysContended(true), service(80)))
		}},
		{why: "an object outlives its Application", want: leftOver, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.remove(user, app(web, nil))
		}},
		{why: "what was moved is left over", want: leftOver, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.write(user, app(web, isThere, service(80)))
			c.write(other, c.marked(web, service(80), "demo-east"))
		}},
		{why: "what left the spec is left over", want: leftOver, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			c.respec(web)
			c.write(agent, app(web, says(true)))
		}},
		{why: "what left the spec stays while another object cannot be created", want: unreached, settled: []types.NamespacedName{web}, history: func(c *tape) {
			running(c)
			another := object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "another"}}
			c.respec(web, another)
			c.write(agent, app(web, says(false), another))
		}},
		{why: "an object of no Application is changed", want: harm, history: func(c *tape) {
			c.write(user, in("demo", service(80)))
			c.write(user, app(web, nil, service(81)))
			c.write(agent, c.marked(web, service(81), "demo"))
		}},
		{why: "and it may be where that is asked for", history: func(c *tape) {
			c.write(user, in("demo", service(80)))
			c.write(user, app(web, annotated(application.AdoptAnnotation, "true"), service(81)))
			c.write(agent, c.marked(web, service(81), "demo"))
		}},
		{why: "an object of no Application is deleted", want: harm, history: func(c *tape) {
			c.write(user, in("demo", service(80)))
			c.write(user, app(web, nil))
			c.remove(agent, in("demo", service(80)))
		}},
		{why: "what belongs to another Application is taken", want: harm, history: func(c *tape) {
			running(c)
			c.write(user, app(rival, nil, service(80)))
			c.write(agent, c.marked(rival, service(80), "demo"))
		}},
		{why: "an object is deleted that is wanted", want: needlessDelete, history: func(c *tape) {
			running(c)
			c.remove(agent, in("demo", service(80)))
		}},
		{why: "an object is deleted before the deletion of its Application is answered", history: func(c *tape) {
			running(c)
			c.remove(user, app(web, nil))
			deleted := len(c.Requests) - 1
			c.remove(agent, in("demo", service(80)))
			c.Requests[deleted].Ended = c.now.Add(time.Second)
		}},
		{why: "an object is deleted before it is where it goes", want: needlessDelete, history: func(c *tape) {
			running(c)
			c.write(user, app(web, isThere, service(80)))
			c.remove(agent, in("demo", service(80)))
		}},
		{why: "an object is created that no Application asks for", want: doubleCreate, history: func(c *tape) {
			c.write(user, app(web, nil))
			c.write(agent, c.marked(web, service(80), "demo"))
		}},
		{why: "an object is created anew that the user has deleted", history: func(c *tape) {
			running(c)
			c.remove(user, in("demo", service(80)))
			c.write(agent, c.marked(web, service(80), "demo"))
		}},
		{why: "an edit of what no manifest has is undone", want: lostEdit, history: func(c *tape) {
			running(c)
			c.write(user, c.sticky(service(81)))
			c.write(agent, c.marked(web, service(80), "demo"))
		}},
		{why: "the audit log lacks the write before", history: func(c *tape) {
			running(c)
			c.write(user, c.sticky(service(81)))
			c.version++
			c.basis(c.version, c.marked(web, service(80), "demo"))
		}},
		{why: "and it survives", history: func(c *tape) {
			running(c)
			c.write(user, c.sticky(service(81)))
			c.write(agent, c.sticky(service(80)))
		}},
		{why: "an agent tries what it may not", want: beyondRights, history: func(c *tape) {
			running(c)
			c.refuse("kube-system", 403)
		}},
		{why: "an API server that has just started refuses everything", history: func(c *tape) {
			running(c)
			c.Warming = []Window{{c.now, c.now.Add(time.Minute)}}
			c.refuse("demo", 403).Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
		}},
		{why: "an agent writes where it has nothing to do", want: beyondRights, history: func(c *tape) {
			c.write(user, app(web, nil, service(80)))
			c.write(agent, c.marked(web, service(80), "kube-public"))
		}},
		{why: "a hot loop", want: hotLoop, history: func(c *tape) {
			running(c)
			for range hot {
				c.refuse("demo", 422)
				c.now = c.now.Add(-990 * time.Millisecond)
			}
		}},
		{why: "a status goes back", want: falseStatus, history: func(c *tape) {
			running(c)
			former := app(web, says(true), service(80))
			c.respec(web, service(81))
			now := app(web, says(true), service(81))
			c.write(agent, now)
			back := runtime.DeepCopyJSON(now)
			fields(back, "data")[application.StatusKey] = fields(former, "data")[application.StatusKey]
			c.write(agent, back)
		}},
		{why: "a status is not true", want: falseStatus, settled: []types.NamespacedName{web}, history: func(c *tape) {
			c.write(user, app(web, nil, service(80)))
			c.write(agent, c.marked(web, service(80), "demo"))
			c.write(agent, app(web, says(false), service(80)))
		}},
		{why: "an object is another's, and the status does not say so", want: falseStatus, settled: []types.NamespacedName{web, rival}, history: func(c *tape) {
			running(c)
			c.write(user, app(rival, nil, service(80)))
			c.write(agent, app(rival, says(true), service(80)))
		}},
	}
	for _, each := range cases {
		t.Run(each.why, func(t *testing.T) {
			c := newTape(t)
			each.history(c)
			found := c.end(each.settled...)
			var got []string
			for _, violation := range found {
				got = append(got, violation.Rule)
			}
			slices.Sort(got)
			if all := strings.Join(slices.Compact(got), " "); all != each.want {
				t.Errorf("violated is %q, want %q: %v", all, each.want, found)
			}
		})
	}
}

// Writes are sorted by their resourceVersions, because answers overtake each other.
func TestOrder(t *testing.T) {
	c := newTape(t)
	running(c)
	c.write(user, c.marked(web, service(81), "demo"))
	last := len(c.Requests) - 1
	c.Requests[1], c.Requests[last] = c.Requests[last], c.Requests[1]
	for _, l := range replay(c.Requests).lives {
		if l.key.resource == "services" && (l.created() == nil || len(l.turns) != 2 || l.turns[1].before == nil) {
			t.Errorf("the life of the Service is %v", l.turns)
		}
	}
}
