package mutate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Properties of the hooks for all manifests and observer schemas.
func FuzzInject(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("Two containers, and a schema for each of them."))
	f.Fuzz(func(t *testing.T, choices []byte) { checkInjection(t, choices) })
}

func TestHooksLaws(t *testing.T) {
	random := rand.NewChaCha8([32]byte{7})
	samples, tried := 200, 0
	if testing.Short() {
		samples = 50
	}
	for range samples {
		choices := make(tape, 600)
		if _, err := random.Read(choices); err != nil {
			t.Fatal(err)
		}
		if tried += checkInjection(t, choices); t.Failed() {
			return
		}
	}
	t.Logf("%d removals were mended", tried)
}

// checkInjection injects hooks. It checks that the added elements are observed and repaired,
// and that they do not change the comparison of anything else.
func checkInjection(t *testing.T, choices tape) int {
	t.Helper()
	hooks := []application.Hooks{complete(), both(), {Shutdown: true, InitContainers: true, Application: "app", Namespace: "demo"}}[choices.below(3)]
	var resources, custom []object
	for i := range 1 + choices.below(3) {
		resource := choices.workload(i)
		resources = append(resources, resource)
		if choices.below(4) > 0 {
			custom = append(custom, choices.schemaOf(resource))
		}
	}
	plain, err := align(mangled(t, resources, custom)).Of(resources)
	check.Must(t, err)
	s := injected(t, hooks, resources, custom)
	tried := 0
	for i, resource := range resources {
		checkSelf(t, plain[i], resource, s.schemas[i], s.resources[i])
		tried += s.checkTampering(t, i)
		live := choices.live(resource)
		s.checkOthers(t, i, plain[i], resource, live)
	}
	if t.Failed() {
		t.Logf("resources %s\nschemas %s\nextended %s", text(t, resources), text(t, custom), text(t, s.custom))
	}
	return tried
}

// checkSelf checks that an object still differs from itself only where it violates its own
// lengths.
func checkSelf(t *testing.T, plain schema.Schema, resource object, hooked schema.Schema, desired object) {
	t.Helper()
	before := places(plain.Compare(resource, resource))
	for _, place := range places(hooked.Compare(desired, desired)) {
		if !slices.Contains(before, place) {
			t.Errorf("with hooks it differs from itself: %s", place)
		}
	}
}

// checkOthers checks that a live object has the same differences as without the hooks. The
// added elements themselves match. If the hooks add to a list, a missing observed element is
// reported even where the minimum was lower. The element in its place may then be too much, so
// such lists are not checked.
func (s subject) checkOthers(t *testing.T, i int, plain schema.Schema, resource, live object) {
	t.Helper()
	if len(plain.Compare(resource, resource)) > 0 {
		return // a maximum below its own length is raised
	}
	before := places(plain.Compare(resource, live))
	after := places(s.schemas[i].Compare(s.resources[i], withAdded(live, s.resources[i])))
	for _, place := range after {
		if !slices.Contains(before, place) && !isLacking(plain, resource, live, place) {
			t.Errorf("only with hooks it is seen: %s\nlive %s", place, text(t, live))
		}
	}
	for _, place := range before {
		if !slices.Contains(after, place) && !isLacking(plain, resource, live, place) {
			t.Errorf("with hooks it is not seen: %s\nlive %s", place, text(t, live))
		}
	}
}

var (
	extendedLists  = regexp.MustCompile(`^\w+ (.*\.(?:env|volumeMounts|volumes))(\W|$)`)
	containerLists = regexp.MustCompile(`^\w+ (.*\.(?:containers|initContainers))$`)
)

// isLacking reports whether a difference concerns a list to which the hooks add, and which
// lacks an observed element of the manifest.
func isLacking(plain schema.Schema, resource, live object, place string) bool {
	if found := containerLists.FindStringSubmatch(place); found != nil { // all elements are observed then
		wanted, _ := at(resource, found[1]).([]any)
		have, _ := at(live, found[1]).([]any)
		observed, _ := at(plain.Document(), found[1]).([]any)
		return strings.HasPrefix(place, "Too") && !isThere(wanted[min(len(wanted), max(0, len(observed)-1)):], have)
	}
	found := extendedLists.FindStringSubmatch(place)
	if found == nil {
		return false
	}
	list := strings.NewReplacer("[", ".", "]", "").Replace(found[1])
	have, _ := at(live, list).([]any)
	list = inManifest(resource, live, list)
	wanted, _ := at(resource, list).([]any)
	observed, _ := at(plain.Document(), list).([]any)
	for i, item := range wanted[:max(0, min(len(wanted), len(observed)-1))] {
		fields, isObject := observed[i].(object)
		if !isThere([]any{item}, have) && (!isObject || len(fields) > 0) {
			return true
		}
	}
	return false
}

// isThere reports whether there are elements of all these names.
func isThere(wanted, have []any) bool {
	return !slices.ContainsFunc(wanted, func(item any) bool {
		return !slices.ContainsFunc(have, func(other any) bool { return nameOf(other) == nameOf(item) })
	})
}

// inManifest returns the place of the manifest's list for the place of a live one: the
// containers may have another order.
func inManifest(resource, live object, place string) string {
	parent, _, last := cutLast(place)
	if !strings.Contains(parent, "ontainers.") {
		return place
	}
	containers, index, _ := cutLast(parent)
	name := nameOf(at(live, containers).([]any)[index])
	items, _ := at(resource, containers).([]any)
	index = slices.IndexFunc(items, func(item any) bool { return nameOf(item) == name })
	return fmt.Sprintf("%s.%d.%s", containers, index, last)
}

// withAdded returns the live object with the elements that hooks have added to the desired
// one, in the containers of the same names.
func withAdded(live, desired object) object {
	with := runtime.DeepCopyJSON(live)
	for _, place := range addedIn(desired) {
		list, _, _ := cutLast(place)
		added := runtime.DeepCopyJSONValue(at(desired, place))
		if parent, _, last := cutLast(list); strings.Contains(parent, "ontainers.") {
			containers, index, _ := cutLast(parent)
			name := at(desired, containers).([]any)[index].(object)["name"]
			items, _ := at(with, containers).([]any)
			for _, item := range items {
				if item.(object)["name"] == name {
					items, _ := item.(object)[last].([]any)
					item.(object)[last] = append(items, added)
				}
			}
			continue
		}
		change(with, list, func(items any) any {
			list, _ := items.([]any)
			return append(list, added)
		})
	}
	return with
}

func places(found schema.Differences) []string {
	var places []string
	for _, difference := range found {
		places = append(places, string(difference.Kind)+" "+difference.Path.String())
	}
	return places
}

func text(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	check.Must(t, err)
	return string(text)
}

// tape is a row of choices. At its end each choice is 0.
type tape []byte

func (c *tape) below(n int) int {
	if len(*c) == 0 {
		return 0
	}
	choice := int((*c)[0]) % n
	*c = (*c)[1:]
	return choice
}

// workload returns a resource that creates Pods. Its lists may be null or absent.
func (c *tape) workload(number int) object {
	kinds := []string{"v1 Pod", "apps/v1 Deployment", "batch/v1 CronJob", "v1 ReplicationController", "batch/v1 Job"}
	apiVersion, kind, _ := strings.Cut(kinds[c.below(len(kinds))], " ")
	pod := object{"containers": c.containers(1 + c.below(3)), "hostname": "a"}
	c.maybe(pod, "initContainers", func() any { return c.containers(c.below(3)) })
	c.maybe(pod, "volumes", func() any { return c.named("v", object{"emptyDir": object{"medium": "Memory"}}) })
	spec := pod
	switch kind {
	case "Pod":
	case "CronJob":
		spec = object{"jobTemplate": object{"spec": object{"template": object{"spec": pod}}}, "schedule": "* * * * *"}
	default:
		spec = object{"template": object{"spec": pod, "metadata": object{"labels": object{"a": "b"}}}, "replicas": int64(1)}
	}
	metadata := object{"name": fmt.Sprint("web", number)}
	if c.below(3) == 1 {
		metadata["namespace"] = []any{"demo", "other"}[c.below(2)]
	}
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec}
}

func (c *tape) maybe(fields object, name string, value func() any) {
	switch c.below(4) {
	case 0:
	case 1:
		fields[name] = nil
	default:
		fields[name] = value()
	}
}

func (c *tape) containers(n int) []any {
	containers := []any{}
	for i := range n {
		container := object{"name": fmt.Sprint("c", i), "image": "nginx"}
		c.maybe(container, "env", func() any { return c.named("E", object{"value": "a"}) })
		c.maybe(container, "volumeMounts", func() any {
			mounts := c.named("v", object{"readOnly": true})
			for i, mount := range mounts {
				mount.(object)["mountPath"] = fmt.Sprint("/mnt/", i)
			}
			return mounts
		})
		containers = append(containers, container)
	}
	return containers
}

// named returns up to three elements with names.
func (c *tape) named(name string, fields object) []any {
	items := []any{}
	for i := range c.below(4) {
		item := runtime.DeepCopyJSON(fields)
		item["name"] = fmt.Sprint(name, i)
		items = append(items, item)
	}
	return items
}

// schemaOf returns an observer schema for some fields of a resource, and for some that it does
// not have.
func (c *tape) schemaOf(resource object) object {
	observed := object{"apiVersion": resource["apiVersion"], "kind": resource["kind"], "metadata": object{"name": below(resource, "metadata")["name"]}}
	if c.below(8) > 0 {
		observed["spec"] = c.node("spec", resource["spec"])
	}
	return observed
}

func (c *tape) node(name string, value any) any {
	if c.below(10) == 1 {
		return nil
	}
	switch value := value.(type) {
	case object:
		return c.fields(value)
	case []any:
		return c.list(value)
	case nil:
		if slices.Contains([]string{"env", "volumes", "volumeMounts", "initContainers"}, name) && c.below(2) > 0 {
			return c.list(nil)
		}
	}
	return nil
}

func (c *tape) fields(value object) object {
	fields := object{}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if c.below(5) > 0 {
			fields[name] = c.node(name, value[name])
		}
	}
	if _, isContainer := value["image"]; isContainer { // lists that are not in the manifest
		for _, name := range []string{"env", "volumeMounts"} {
			if _, ok := value[name]; !ok && c.below(4) == 1 {
				fields[name] = c.list(nil)
			}
		}
	}
	if c.below(4) == 1 {
		fields["more"] = nil
	}
	return fields
}

// list returns a schema of fewer or more elements than there are.
func (c *tape) list(values []any) []any {
	items := []any{}
	for i := range c.below(len(values) + 2) {
		switch {
		case i < len(values):
			items = append(items, c.node("", values[i]))
		default:
			items = append(items, []any{nil, object{}, object{"name": nil}}[c.below(3)])
		}
	}
	least := c.below(len(values) + 1)
	most := 0
	switch c.below(8) {
	case 0, 1:
	case 2: // fewer than there are, or more
		least = c.below(len(values) + 2)
		most = max(least, len(items))
	default:
		most = max(least, len(items), len(values)) + c.below(3)
	}
	return append(items, object{schema.MinLengthKey: int64(least), schema.MaxLengthKey: int64(most)})
}

// live returns a live object. Anything but the structure may differ.
func (c *tape) live(resource object) object {
	live, _ := c.lived("", resource).(object)
	live["apiVersion"], live["kind"], live["metadata"] = resource["apiVersion"], resource["kind"], runtime.DeepCopyJSONValue(resource["metadata"])
	return live
}

func (c *tape) lived(name string, value any) any {
	switch value := value.(type) {
	case object:
		fields := object{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			fields[name] = c.lived(name, value[name])
		}
		if c.below(4) == 1 {
			fields["more"] = "by somebody else"
		}
		return fields
	case []any:
		items := []any{}
		for _, item := range value {
			if name == "containers" || c.below(4) > 0 {
				items = append(items, c.lived("", item))
			}
		}
		for i := range c.below(3) {
			stranger := object{"name": fmt.Sprint("stranger", i), "mountPath": fmt.Sprint("/stranger/", i)}
			items = slices.Insert(items, c.below(len(items)+1), any(stranger))
		}
		return items
	case nil:
		return nil
	}
	if name != "name" && name != "mountPath" && c.below(5) == 1 {
		return "by somebody else"
	}
	return value
}
