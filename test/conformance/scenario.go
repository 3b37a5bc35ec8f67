package main

import (
	"errors"
	"fmt"
	"maps"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// scenario runs the steps of a case on one state.
func (r runner) scenario(c testCase) (string, error) {
	if len(c.Steps) == 0 {
		return "the scenario has no steps", nil
	}
	root := map[string]any{
		"spec": runtime.DeepCopyJSON(c.Spec),
		"status": map[string]any{
			"mangled_observer_schema": []any{}, "last_applied_manifest": []any{}, "last_observed_manifest": []any{},
		},
	}
	for i, raw := range c.Steps {
		step, _ := raw.(map[string]any)
		got, err := r.perform(root, step)
		switch {
		case errors.Is(err, errBroken):
			return "", err
		case err != nil:
			return fmt.Sprintf("step %d %v: %v", i, step["do"], err), nil
		}
		if want, ok := step["want"].(map[string]any); ok {
			if diff := cmp.Diff(normal(want), normal(named(want, got))); diff != "" {
				return fmt.Sprintf("step %d %v:\n%s", i, step["do"], diff), nil
			}
		}
	}
	return "", nil
}

// perform runs one step and writes its result into the root. It returns the state after
// it; the state of a delta is its result.
func (r runner) perform(root, step map[string]any) (map[string]any, error) {
	switch step["do"] {
	case "set":
		path, _ := step["path"].([]any)
		value, given := step["value"]
		assign(root, path, runtime.DeepCopyJSONValue(value), given)
		return root, nil
	case "reconcile":
		return root, r.sequence(root, nil, "default_schema", "applied_from_spec")
	case "response":
		return root, r.sequence(root, step["response"], "applied_from_response", "observed_from_response")
	case "observe":
		root["status"].(map[string]any)["last_observed_manifest"] = []any{}
		return root, r.each(root, step["live"], "observed_from_response")
	case "learn":
		return root, r.each(root, step["live"], "applied_from_response")
	case "delta":
		return r.engine.call("delta", root)
	}
	return nil, fmt.Errorf("unknown step %v", step["do"])
}

func (r runner) each(root map[string]any, live any, name string) error {
	items, _ := live.([]any)
	for _, item := range items {
		if err := r.sequence(root, item, name); err != nil {
			return err
		}
	}
	return nil
}

// sequence runs functions one after the other and writes their results.
func (r runner) sequence(root map[string]any, response any, names ...string) error {
	status, _ := root["status"].(map[string]any)
	for _, name := range names {
		input := map[string]any{"spec": root["spec"], "status": status, "response": response}
		result, err := r.engine.call(name, input)
		if err != nil {
			return err
		}
		changed, _ := runtime.DeepCopyJSON(result)["status"].(map[string]any)
		maps.Copy(status, changed)
	}
	return nil
}

// assign sets or removes the value at a path of keys and indices.
func assign(root any, path []any, value any, given bool) any {
	if len(path) == 0 {
		return value
	}
	switch node := root.(type) {
	case map[string]any:
		key, _ := path[0].(string)
		if len(path) == 1 && !given {
			delete(node, key)
			return node
		}
		node[key] = assign(node[key], path[1:], value, given)
	case []any:
		i, _ := path[0].(int64)
		if len(path) == 1 && !given {
			return append(node[:i:i], node[i+1:]...)
		}
		node[i] = assign(node[i], path[1:], value, given)
	}
	return root
}

// named returns the lists of a state that the case names: it need not name all.
func named(want, state map[string]any) map[string]any {
	chosen := map[string]any{}
	for key, value := range want {
		inner, isObject := value.(map[string]any)
		held, ok := state[key].(map[string]any)
		if isObject && ok {
			chosen[key] = named(inner, held)
		} else if there, ok := state[key]; ok {
			chosen[key] = there
		}
	}
	return chosen
}
