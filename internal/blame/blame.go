// Package blame finds who set a field of an object, by the object's managedFields:
//
//	blame.Of(live, []schema.Path{replicas}, "krake-agent").String()
//	// "kube-controller-manager (scale) (Update)"
//
// The result is a hint, not a proof: a manager chooses its own name, and the removal of a
// field leaves no trace. The package knows managedFields as JSON, and no cluster.
package blame

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Culprit is the manager that wrote a field last. Its time is the time of the manager's last write
// to any field.
type Culprit struct {
	Manager string
	// Subresource is the one that was written, such as "scale"; empty: the object itself.
	Subresource string
	Operation   string
	Time        time.Time
}

// Known reports whether managedFields names a manager.
func (c Culprit) Known() bool { return c.Manager != "" }

// Name returns "kube-controller-manager (scale)" for a write to a subresource, "kubectl-edit"
// for one to the object, and "unknown" without a manager.
func (c Culprit) Name() string {
	switch {
	case !c.Known():
		return "unknown"
	case c.Subresource != "":
		return c.Manager + " (" + c.Subresource + ")"
	}
	return c.Manager
}

// String returns "kubectl-set (Update at 2026-01-02T15:04:05Z)", and "autoscaler (scale) (Update)"
// without a time: the API server stores none for writes to the subresource scale.
func (c Culprit) String() string {
	if !c.Known() {
		return c.Name() + " (the removal of a field leaves no trace)"
	}
	if c.Time.IsZero() {
		return fmt.Sprintf("%s (%s)", c.Name(), c.Operation)
	}
	return fmt.Sprintf("%s (%s at %s)", c.Name(), c.Operation, c.Time.UTC().Format(time.RFC3339))
}

// Of returns the manager, other than self, that wrote one of the fields last.
func Of(live map[string]any, paths []schema.Path, self string) Culprit {
	managed, _, _ := unstructured.NestedFieldNoCopy(live, "metadata", "managedFields")
	entries, _ := managed.([]any)
	var last Culprit
	for _, entry := range entries {
		entry, _ := entry.(map[string]any)
		culprit := culpritOf(entry)
		if culprit.Manager == self || !ownsAny(entry, live, paths) {
			continue
		}
		if !last.Known() || culprit.Time.After(last.Time) {
			last = culprit
		}
	}
	return last
}

// culpritOf reads an entry of managedFields without converting it to its Go type: that would
// decode the fields of every manager before a repair is sent.
func culpritOf(entry map[string]any) (culprit Culprit) {
	culprit.Manager, _ = entry["manager"].(string)
	culprit.Subresource, _ = entry["subresource"].(string)
	culprit.Operation, _ = entry["operation"].(string)
	text, _ := entry["time"].(string)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		culprit.Time = at
	}
	return culprit
}

func ownsAny(entry, live map[string]any, paths []schema.Path) bool {
	fields, ok := entry["fieldsV1"].(map[string]any)
	return ok && slices.ContainsFunc(paths, func(path schema.Path) bool { return owns(fields, live, path) })
}

// owns reports whether a set of managed fields (fieldsV1) contains a path: "f:name" is a field,
// "k:{...}" the list element with that key, "v:..." a value. A set that ends before the path
// does contains everything below.
func owns(fields map[string]any, value any, path schema.Path) bool {
	if len(path) == 0 {
		return true
	}
	var name string
	var next any
	switch parent := value.(type) {
	case map[string]any:
		name, next = "f:"+path[0].Field, parent[path[0].Field]
	case []any:
		if path[0].Index < 0 || path[0].Index >= len(parent) {
			return false
		}
		next = parent[path[0].Index]
		name = elementName(fields, next)
	}
	below, ok := fields[name].(map[string]any)
	if !ok {
		return false
	}
	return isLeaf(below) || owns(below, next, path[1:])
}

func isLeaf(fields map[string]any) bool { return len(fields) == 0 }

// elementName returns the name that a list element has among the managed fields.
func elementName(fields map[string]any, element any) string {
	for name := range fields {
		if key, ok := strings.CutPrefix(name, "k:"); ok && hasKey(element, key) {
			return name
		}
	}
	return valueName(element)
}

// valueName returns the name of an element that has no key.
func valueName(element any) string {
	text, err := json.Marshal(element)
	if err != nil {
		return ""
	}
	return "v:" + string(text)
}

func hasKey(element any, key string) bool {
	fields, ok := element.(map[string]any)
	var wanted map[string]any
	if !ok || json.Unmarshal([]byte(key), &wanted) != nil {
		return false
	}
	for name, value := range wanted {
		if fmt.Sprint(fields[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}
