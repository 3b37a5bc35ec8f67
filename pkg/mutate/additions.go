package mutate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// additions are the elements that the hooks add to the Pods of a workload, and to each container.
type additions struct{ pod, container []addition }

// addition is what the hooks add to one list.
type addition struct {
	list string
	// keys are the fields that each identify an element.
	keys   []string
	pieces []piece
}

// piece is an added element with its hook.
type piece struct {
	hook   application.Hook
	fields map[string]any
}

func additionsOf(hooks application.Hooks) additions {
	volumes := addition{list: "volumes", keys: []string{"name"}}
	mounts := addition{list: "volumeMounts", keys: []string{"mountPath", "name"}}
	variables := addition{list: "env", keys: []string{"name"}}
	for _, hook := range hooks.Enabled() {
		volume := application.HookVolume(hooks.Application, hook)
		certs, token := application.CertsSecret(hooks.Application, hook), application.TokenSecret(hooks.Application, hook)
		volumes.pieces = append(volumes.pieces, piece{hook, map[string]any{"name": volume, "secret": map[string]any{"secretName": certs}}})
		mounts.pieces = append(mounts.pieces, piece{hook, map[string]any{"name": volume, "mountPath": application.CertsPath(hook)}})
		variables.pieces = append(variables.pieces,
			piece{hook, variable(application.TokenVariable(hook), token, application.TokenKey(hook))},
			piece{hook, variable(application.URLVariable(hook), token, application.URLKey(hook))})
	}
	return additions{pod: []addition{volumes}, container: []addition{mounts, variables}}
}

// variable returns an environment variable whose value is in a Secret. A server drops the empty
// value, which removes one that was set later. "kubectl set env" replaces the reference by a value,
// and an API server accepts no variable with both.
func variable(name, secret, key string) map[string]any {
	return map[string]any{
		"name":      name,
		"value":     "",
		"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": secret, "key": key}},
	}
}

// visit calls do for each list with additions. do receives the object with the list, in a spec of
// Pods, and its place.
func (a additions) visit(w workload, spec map[string]any, do func(fields map[string]any, one addition, at string)) {
	at := strings.Join(append([]string{ResourcePath(w.index)}, w.path...), ".")
	for _, one := range a.pod {
		do(spec, one, at)
	}
	for _, name := range w.lists {
		containers, _ := listOf(spec[name])
		for i, container := range containers {
			fields, _ := container.(map[string]any)
			for _, one := range a.container {
				do(fields, one, fmt.Sprintf("%s.%s[%d]", at, name, i))
			}
		}
	}
}

// checkRoom refuses additions that would make a manifest of too many values. It only counts: a
// container of two bytes gets additions that take kilobytes in each document.
func (a additions) checkRoom(workloads []workload, resources []map[string]any) *field.Error {
	containers, values := 0, manifest.CountValues(valuesOf(resources))
	for _, w := range workloads {
		containers += w.containers()
		values += valuesIn(a.pod) + w.containers()*valuesIn(a.container)
	}
	if values <= manifest.MaxValues {
		return nil
	}
	return forbidden(annotationPath(application.HooksAnnotation), fmt.Sprintf(
		"the hooks add to %d containers, and the manifest would have %d values, which are texts, numbers, objects and lists; the maximum is %d: "+
			"split the Application, or remove hooks", containers, values, manifest.MaxValues))
}

// valuesIn returns the number of values in additions, with their lists.
func valuesIn(added []addition) int {
	values := 0
	for _, one := range added {
		values++
		for _, p := range one.pieces {
			values += manifest.CountValues(p.fields)
		}
	}
	return values
}

// addTo returns the workload's resource with the additions.
func (a additions) addTo(w workload) map[string]any {
	added := runtime.DeepCopyJSON(w.resource)
	a.visit(w, below(added, w.path...), func(fields map[string]any, one addition, _ string) {
		items, _ := listOf(fields[one.list])
		items = slices.Clip(items)
		for _, p := range one.pieces {
			items = append(items, runtime.DeepCopyJSONValue(p.fields))
		}
		fields[one.list] = items
	})
	return added
}

// checkFree refuses elements of the user that have a key of an added element.
func (a additions) checkFree(w workload) field.ErrorList {
	var refusals field.ErrorList
	a.visit(w, w.spec(), func(fields map[string]any, one addition, at string) {
		items, _ := listOf(fields[one.list])
		for i, item := range items {
			given, _ := item.(map[string]any)
			for _, p := range one.pieces {
				for _, key := range one.keys {
					if isTaken(given[key], p.fields[key]) {
						refusals = append(refusals, forbidden(fmt.Sprintf("%s.%s[%d].%s", at, one.list, i, key), isOfHook(p.hook)))
					}
				}
			}
		}
	})
	return refusals
}

// isTaken reports whether two names are equal, or two paths in any spelling.
func isTaken(given, ours any) bool {
	name, isText := given.(string)
	taken, _ := ours.(string)
	return isText && (name == taken || path.IsAbs(taken) && path.Clean("/"+name) == path.Clean(taken))
}

func isOfHook(hook application.Hook) string {
	return fmt.Sprintf("the hook %s adds it: choose another one, or remove the hook from annotation %s", hook, application.HooksAnnotation)
}

// isFound reports whether the keys that the user sets for the list identify each added element. The
// other fields have the same value in all elements, or a server drops them.
func (a addition) isFound(stated any) bool {
	names, isList := stated.([]any)
	if !isList && stated != nil {
		names = []any{stated}
	}
	return !slices.ContainsFunc(names, func(raw any) bool {
		name, _ := raw.(string)
		return !slices.Contains(a.keys, name)
	})
}
