package checker

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Contains reports whether live has everything in want.
func Contains(live, want any) bool {
	switch want := want.(type) {
	case object:
		have, _ := live.(object)
		for name, each := range want {
			if !Contains(have[name], each) {
				return false
			}
		}
		return true
	case []any:
		items, _ := live.([]any)
		for i, each := range want {
			if len(items) != len(want) || !Contains(items[i], each) {
				return false
			}
		}
		return true
	}
	return same(live, want)
}

// same compares numbers by their value, of any type.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b) }

// changes returns the paths of the values that differ, as JSON pointers.
func changes(before, after any, at string) []string {
	was, wasFields := before.(object)
	is, isFields := after.(object)
	if wasFields && isFields || before == nil && isFields || after == nil && wasFields {
		var found []string
		for _, name := range namesOf(was, is) {
			found = append(found, changes(was[name], is[name], at+"/"+name)...)
		}
		return found
	}
	old, wasList := before.([]any)
	now, isList := after.([]any)
	if wasList && isList && len(old) == len(now) {
		var found []string
		for i := range old {
			found = append(found, changes(old[i], now[i], at+"/"+strconv.Itoa(i))...)
		}
		return found
	}
	if same(before, after) {
		return nil
	}
	return []string{at}
}

func namesOf(a, b object) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// losesNoEdit: an agent changes no field that no manifest has. A field that was removed from the manifest was in an earlier one.
func (j *judge) losesNoEdit() {
	for _, l := range j.world.lives {
		for _, turn := range l.turns {
			owner, owned := ownerOf(turn.after)
			if former, was := ownerOf(turn.before); !owned && was {
				owner, owned = former, true
			}
			if _, byAgent := agentOf(turn.User.Username); !byAgent || turn.before == nil || !owned {
				continue
			}
			if basis := basisOf(turn.Request); basis != "" && basis != text(turn.before, "metadata", "resourceVersion") {
				continue // an API server that was killed had another write, whose audit event is lost
			}
			for _, path := range changes(turn.before, turn.after, "") {
				if !isKept(path) && !j.isSaid(owner, whatIs(turn.after), path, turn.Request) {
					j.report(lostEdit, owner, "%s has not asked to change %s: %s", owner, path, turn.Request)
				}
			}
		}
	}
}

// basisOf returns the version that an accepted JSON Patch was made for, empty if the request has none.
func basisOf(r *Request) string {
	var operations []struct {
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if json.Unmarshal(r.Body, &operations) == nil && len(operations) > 0 && operations[0].Path == "/metadata/resourceVersion" {
		version, _ := operations[0].Value.(string)
		return version
	}
	return ""
}

// isKept reports whether a path is managed by the API server, or is one of our marks.
func isKept(path string) bool {
	for _, ours := range []string{"/metadata/labels/", "/metadata/annotations/"} {
		if name, found := strings.CutPrefix(path, ours); found && manifest.IsReserved(name) {
			return true
		}
	}
	for _, prefix := range []string{
		"/status", "/metadata/resourceVersion", "/metadata/generation", "/metadata/managedFields",
		"/metadata/deletionTimestamp", "/metadata/deletionGracePeriodSeconds",
	} {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

// isSaid reports whether any manifest of the Application, now or earlier, has the path,
// a path below it, or all of it.
func (j *judge) isSaid(owner types.NamespacedName, what, path string, r *Request) bool {
	for _, v := range j.world.apps[owner] {
		if v.from.After(r.Ended) {
			break
		}
		for _, said := range changes(nil, v.wanted[what], "") {
			if path == said || strings.HasPrefix(path, said+"/") || strings.HasPrefix(said, path+"/") {
				return true
			}
		}
	}
	return false
}
