package checker

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Case is the input of a judgement.
type Case struct {
	Requests []Request
	// Dump has all objects at the end, with the Applications, and Until is when they
	// were read.
	Dump  []map[string]any
	Until time.Time
	// Settled has the time from which nothing remained to be done for an Application.
	// Work on an Application without a time may still be under way.
	Settled map[types.NamespacedName]time.Time
	// Places has the namespaces where the agent of a cluster may have objects.
	Places map[string][]string
	// Lag is how long an agent may act on an outdated state.
	Lag time.Duration
	// Warming has the times just after a start of the API server: it refuses all
	// requests until it has read the RBAC rules.
	Warming []Window
}

// Window is a span of time.
type Window struct{ From, Until time.Time }

// Violation is a broken rule, for an Application or for none.
type Violation struct {
	Rule string
	App  types.NamespacedName
	What string
}

func (v Violation) String() string { return v.Rule + ": " + v.What }

// The rules.
const (
	unreached      = "at the end, the objects are as the Applications say, and nothing more is written"
	leftOver       = "an object that is marked as an Application's belongs to one that exists and wants it"
	harm           = "an agent writes to no object that is not its Application's"
	needlessDelete = "an agent deletes no object that the Application has wanted throughout"
	doubleCreate   = "an agent creates an object once for each time that it is asked for"
	lostEdit       = "an agent changes no field that no manifest has"
	beyondRights   = "an agent tries nothing that it may not do"
	hotLoop        = "an agent does not write the same object again and again"
	falseStatus    = "a status never returns to an earlier spec, and is true at the end"
)

// judge collects the violations.
type judge struct {
	*Case

	world *world
	// owners has the Application that an object belongs to, or has belonged to.
	owners map[key]types.NamespacedName
	found  []Violation
}

// Judge returns the violations of all rules, each once.
func (c *Case) Judge() []Violation {
	j := &judge{Case: c, world: replay(c.Requests), owners: map[key]types.NamespacedName{}}
	for _, l := range j.world.lives {
		for _, turn := range l.turns {
			if owner, ok := ownerOf(turn.after); ok {
				j.owners[l.key] = owner
			}
		}
	}
	for name := range j.world.apps {
		j.owners[appKey(name)] = name
	}
	for _, judge := range []func(){
		j.isReached, j.leavesNothing, j.harmsNobody, j.deletesWithReason, j.createsOnce, j.losesNoEdit,
		j.keepsToItsRights, j.isBounded, j.isMonotone,
	} {
		judge()
	}
	return slices.Compact(j.found)
}

func appKey(name types.NamespacedName) key {
	return key{resource: "configmaps", namespace: name.Namespace, name: name.Name}
}

func (j *judge) report(rule string, app types.NamespacedName, format string, arguments ...any) {
	j.found = append(j.found, Violation{rule, app, fmt.Sprintf(format, arguments...)})
}

// isReached: at the end, the objects are as the Applications say, and nothing more is written.
func (j *judge) isReached() {
	for name := range j.Settled {
		app := j.inDump(appKey(name))
		if app == nil {
			continue
		}
		for what, problem := range j.missing(name) {
			j.report(unreached, name, "%s: %s %s", name, what, problem)
		}
	}
	told := map[types.NamespacedName]bool{}
	for i := range j.Requests {
		r := &j.Requests[i]
		name, known := j.owners[keyOf(r)]
		from, settled := j.Settled[name]
		if !known || !settled || !isWrittenByAgent(r) || !r.Received.After(from) || !r.Received.Before(j.Until) {
			continue
		}
		switch before, after := j.written(name, r); {
		case before != nil && forgetsRival(before, after):
			continue
		case before != nil && !told[name] && changesTexts(before, after):
			told[name] = true
			continue
		}
		j.report(unreached, name, "%s: there was nothing to do since %s: %s", name, from.Format("15:04:05.000"), r)
	}
}

func isWrittenByAgent(r *Request) bool {
	_, byAgent := agentOf(r.User.Username)
	return byAgent && isWork(r) && r.IsAccepted()
}

// written returns an Application before and after a write; nil if the write is not of an Application, or creates it.
func (j *judge) written(name types.NamespacedName, r *Request) (before, after *application.Application) {
	versions := j.world.apps[name]
	at := slices.IndexFunc(versions, func(v *version) bool { return v.turn.Request == r })
	if at < 1 {
		return nil, nil
	}
	return versions[at-1].app, versions[at].app
}

// forgetsRival reports whether a write changes what the status says about a rival. The agent
// forgets a rival ten minutes after the last repair, and has to say so.
func forgetsRival(before, after *application.Application) bool {
	was, is := contention(before), contention(after)
	return was.Status == metav1.ConditionTrue && (is.Status != was.Status || is.Message != was.Message)
}

func contention(app *application.Application) metav1.Condition {
	if found := meta.FindStatusCondition(app.Status.Conditions, application.ContendedCondition); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// changesTexts reports whether a write changes messages, counts or the health of single objects, and nothing else of
// the status. Such a write may be half a minute late, and then there is one for all that has changed.
func changesTexts(before, after *application.Application) bool {
	return !equality.Semantic.DeepEqual(before.Status, after.Status) && equality.Semantic.DeepEqual(withoutTexts(before), withoutTexts(after))
}

func withoutTexts(app *application.Application) application.Status {
	status := app.Status
	status.ContainerHealth, status.Conditions, status.Objects = nil, slices.Clone(status.Conditions), slices.Clone(status.Objects)
	for i := range status.Conditions {
		status.Conditions[i].Message = ""
	}
	for i := range status.Objects {
		status.Objects[i].Health, status.Objects[i].Message = "", ""
	}
	return status
}

// missing returns what is wrong with the objects of an Application, except those that
// belong to others.
func (j *judge) missing(name types.NamespacedName) map[string]string {
	problems := map[string]string{}
	now := j.last(name)
	if now == nil || now.app.Deleted || now.app.Settings.Mode != application.Enforce {
		return problems
	}
	for what, wanted := range now.wanted {
		live := j.find(now.app.Cluster, what)
		owner, owned := ownerOf(live)
		switch {
		case live == nil:
			problems[what] = "is not there"
		case !owned || owner != name: // see isMonotone
		case !Contains(live, wanted):
			problems[what] = fmt.Sprintf("is not as the manifest says: %v", live)
		}
	}
	return problems
}

// last returns the last written version of the Application.
func (j *judge) last(name types.NamespacedName) *version {
	versions := j.world.apps[name]
	if len(versions) == 0 {
		return nil
	}
	return versions[len(versions)-1]
}

// find returns the object of a cluster from the dump.
func (j *judge) find(cluster, what string) object {
	for _, each := range j.Dump {
		if whatIs(each) == what && slices.Contains(j.Places[cluster], text(each, "metadata", "namespace")) {
			return each
		}
	}
	return nil
}

func (j *judge) inDump(k key) object {
	for _, each := range j.Dump {
		if text(each, "kind") == "ConfigMap" && k.resource == "configmaps" && text(each, "metadata", "namespace") == k.namespace && text(each, "metadata", "name") == k.name {
			return each
		}
	}
	return nil
}

// leavesNothing: an object that is marked as an Application's belongs to one that exists and wants it.
func (j *judge) leavesNothing() {
	for _, each := range j.Dump {
		owner, ok := ownerOf(each)
		if !ok || text(each, "metadata", "deletionTimestamp") != "" {
			continue
		}
		app, now := j.inDump(appKey(owner)), j.last(owner)
		_, settled := j.Settled[owner]
		switch {
		case app == nil:
			j.report(leftOver, owner, "%s %s/%s is left over: there is no Application %s", text(each, "kind"), text(each, "metadata", "namespace"), text(each, "metadata", "name"), owner)
		case text(each, "metadata", "annotations", application.OwnerUIDAnnotation) != text(app, "metadata", "uid"):
			j.report(leftOver, owner, "%s belongs to a former Application %s", whatIs(each), owner)
		case settled && now != nil && !now.app.Deleted && !j.belongsHere(now, each) && !j.staysHere(now, owner, each):
			j.report(leftOver, owner, "%s in %s is left over: %s does not want it", whatIs(each), text(each, "metadata", "namespace"), owner)
		}
	}
}

// belongsHere reports whether the Application wants the object where it is.
func (j *judge) belongsHere(v *version, o object) bool {
	return v.wants(v.app.Cluster, whatIs(o)) && slices.Contains(j.Places[v.app.Cluster], text(o, "metadata", "namespace"))
}

// staysHere reports whether the object left the spec and the Application still lacks another one there: until all that it
// wants exists, nothing that left is deleted.
func (j *judge) staysHere(v *version, owner types.NamespacedName, o object) bool {
	if !slices.Contains(j.Places[v.app.Cluster], text(o, "metadata", "namespace")) {
		return false
	}
	for what := range v.wanted {
		if its, marked := ownerOf(j.find(v.app.Cluster, what)); !marked || its != owner {
			return true
		}
	}
	return false
}

// harmsNobody: an agent writes to no object that is not its Application's.
func (j *judge) harmsNobody() {
	for _, l := range j.world.lives {
		proved := types.NamespacedName{}
		for _, turn := range l.turns {
			if cluster, byAgent := agentOf(turn.User.Username); byAgent && turn.before != nil && j.last(nameOf(l.key)) == nil {
				j.checkHarm(cluster, turn, proved)
			}
			if owner, ok := ownerOf(turn.after); ok {
				proved = owner
			}
		}
		if l.end == nil || l.end.Verb != "delete" {
			continue
		}
		if _, byAgent := agentOf(l.end.User.Username); byAgent && proved.Name == "" {
			j.report(harm, types.NamespacedName{}, "%s deleted an object of no Application: %s", shortOf(l.end.User.Username), l.end)
		}
	}
}

// checkHarm records a write to an object that is not the Application's, unless the
// Application asks for it.
func (j *judge) checkHarm(cluster string, turn turn, proved types.NamespacedName) {
	before, wasOwned := ownerOf(turn.before)
	after, isOwned := ownerOf(turn.after)
	switch {
	case proved.Name == "" && !j.mayAdopt(cluster, after, isOwned, whatIs(turn.after), turn.Request):
		j.report(harm, after, "%s wrote to an object of no Application: %s", shortOf(turn.User.Username), turn.Request)
	case wasOwned && isOwned && before != after && j.exists(before, turn.Received):
		j.report(harm, before, "%s took what belongs to %s: %s", after, before, turn.Request)
	}
}

func (j *judge) mayAdopt(cluster string, name types.NamespacedName, owned bool, what string, r *Request) bool {
	return owned && slices.ContainsFunc(j.world.versionsIn(name, r.Received.Add(-j.Lag), r.Ended), func(v *version) bool {
		return v.app.Settings.Adopt && v.wants(cluster, what)
	})
}

func (j *judge) exists(name types.NamespacedName, at time.Time) bool {
	versions := j.world.versionsIn(name, at, at)
	return len(versions) > 0 && !slices.ContainsFunc(versions, func(v *version) bool { return v.cm == nil })
}

func nameOf(k key) types.NamespacedName {
	if k.group != "" || k.resource != "configmaps" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: k.namespace, Name: k.name}
}

// deletesWithReason: an agent deletes no object that the Application has wanted throughout.
func (j *judge) deletesWithReason() {
	for _, l := range j.world.lives {
		for _, r := range l.deletions() {
			cluster, byAgent := agentOf(r.User.Username)
			owner, owned := ownerOf(l.turns[len(l.turns)-1].after)
			if !byAgent || !owned {
				continue
			}
			versions := j.world.versionsIn(owner, latest(l.turns[0].Received, r.Received.Add(-j.Lag)), r.Ended)
			what := whatIs(l.turns[0].after)
			if len(versions) > 0 && !slices.ContainsFunc(versions, func(v *version) bool { return j.isReason(v, cluster, what, r) }) {
				j.report(needlessDelete, owner, "%s wanted all along what was deleted: %s", owner, r)
			}
		}
	}
}

// isReason reports whether a version of the Application is a reason to delete an object
// from a cluster: it no longer wants the object, or wants it on another cluster.
func (j *judge) isReason(v *version, cluster, what string, r *Request) bool {
	if v.app.Deleted || v.wanted[what] == nil {
		return true
	}
	return v.app.Cluster != cluster && slices.ContainsFunc(j.world.lives, func(l *life) bool {
		return whatIs(l.turns[0].after) == what && slices.Contains(j.Places[v.app.Cluster], l.key.namespace) &&
			l.turns[0].Received.Before(r.Ended) && (l.end == nil || l.end.Ended.After(r.Received))
	})
}

// deletions returns the accepted requests that delete the object.
func (l *life) deletions() []*Request {
	var found []*Request
	for _, turn := range l.turns {
		if turn.Verb == "delete" {
			found = append(found, turn.Request)
		}
	}
	if l.end != nil && l.end.Verb == "delete" {
		found = append(found, l.end)
	}
	return found
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// createsOnce: an agent creates an object once for each time that it is asked for.
func (j *judge) createsOnce() {
	var former *life
	for _, l := range j.world.lives {
		if former != nil && former.key != l.key {
			former = nil
		}
		created := l.created()
		if created == nil {
			former = nil
			continue
		}
		if cluster, byAgent := agentOf(created.User.Username); byAgent {
			j.checkCreation(cluster, l, former)
		}
		former = l
	}
}

// checkCreation records a creation that no version of the Application asked for, or
// asked for only once.
func (j *judge) checkCreation(cluster string, l, former *life) {
	created, what := l.turns[0], whatIs(l.turns[0].after)
	owner, owned := ownerOf(created.after)
	if !owned {
		j.report(doubleCreate, owner, "created without the marks that prove whose it is: %s", created.Request)
		return
	}
	asking := j.world.versionsIn(owner, created.Received.Add(-j.Lag), created.Ended)
	if !slices.ContainsFunc(asking, func(v *version) bool { return v.wants(cluster, what) }) {
		j.report(doubleCreate, owner, "%s has not asked for it: %s", owner, created.Request)
		return
	}
	if former == nil || former.end == nil {
		return
	}
	if _, byAgent := agentOf(former.end.User.Username); !byAgent || former.created() == nil {
		return
	}
	between := j.world.versionsIn(owner, former.turns[0].Received, created.Ended)
	if !slices.ContainsFunc(between, func(v *version) bool { return !v.wants(cluster, what) }) {
		j.report(doubleCreate, owner, "%s has asked for it once: %s", owner, created.Request)
	}
}

// keepsToItsRights: an agent tries nothing that it may not do.
func (j *judge) keepsToItsRights() {
	for i := range j.Requests {
		r := &j.Requests[i]
		cluster, byAgent := agentOf(r.User.Username)
		if !byAgent {
			continue
		}
		name := j.owners[keyOf(r)]
		switch {
		case r.Status.Code == http.StatusForbidden && r.Annotations["authorization.k8s.io/decision"] == "forbid" && j.isWarming(r):
		case r.Status.Code == http.StatusForbidden && strings.Contains(string(r.Answer), "is being terminated"):
		case r.Status.Code == http.StatusForbidden:
			j.report(beyondRights, name, "tried what it may not: %s", r)
		case isWork(r) && r.IsAccepted() && j.last(nameOf(keyOf(r))) == nil && !slices.Contains(j.Places[cluster], r.Object.Namespace):
			j.report(beyondRights, name, "wrote where it has nothing to do: %s", r)
		}
	}
}

func (j *judge) isWarming(r *Request) bool {
	return slices.ContainsFunc(j.Warming, func(w Window) bool { return r.Ended.After(w.From) && r.Received.Before(w.Until) })
}
