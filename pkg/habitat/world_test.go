package habitat_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// greeter is a Habitat of v1beta2 in which all fields are set.
const greeter = `
apiVersion: habitat.sh/v1beta1
kind: Habitat
metadata: {name: greeter, namespace: shop, uid: u1, generation: 3, labels: {tier: front}}
customVersion: v1beta2
spec:
  v1beta2:
    count: 3
    image: registry.test/hab/greeter:1
    env:
    - {name: HAB_GREETER, value: '{"port":7001}'}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    persistentStorage: {size: 10Gi, mountPath: /data, storageClassName: fast}
    updateStrategy: OnDelete
    service:
      name: greeter
      topology: leader
      group: blue
      channel: unstable
      configSecretName: greeter-config
      filesSecretName: greeter-files
      ringSecretName: inner-ring-20240131235959
      bind:
      - {name: store, service: pgsql, group: default}
      - {name: cache, service: valkey, group: blue}
status: {state: RUNNING}
`

// old is a Habitat of v1beta1 in which all fields are set.
const old = `
apiVersion: habitat.sh/v1beta1
kind: Habitat
metadata: {name: old, namespace: shop}
customVersion: v1beta1
spec:
  count: 2
  image: registry.test/hab/old:1
  env: [{name: HAB_OLD, value: x}]
  service:
    name: old
    topology: standalone
    group: blue
    configSecretName: old-config
    ringSecretName: inner-ring-20240131235959
    bind: [{name: store, service: pgsql, group: default}]
`

// decode returns the only document of a text.
func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	documents, err := manifest.Decode([]byte(text))
	if err != nil || len(documents) != 1 {
		t.Fatalf("%d documents, error %v", len(documents), err)
	}
	return documents[0].(map[string]any)
}

// parse returns the Habitat of an object without mistakes.
func parse(t testing.TB, object map[string]any) habitat.Habitat {
	t.Helper()
	h, mistakes := habitat.Parse(object)
	check.Must(t, mistakes.ToAggregate())
	return h
}

// gone removes a field.
type gone struct{}

// set returns the object with another value at a path such as spec.v1beta2.env.0.name. It
// creates missing objects on the path.
func set(t testing.TB, object map[string]any, path string, value any) map[string]any {
	t.Helper()
	changed := runtime.DeepCopyJSON(object)
	steps := strings.Split(path, ".")
	var at any = changed
	for i, step := range steps {
		last := i == len(steps)-1
		switch holder := at.(type) {
		case map[string]any:
			switch {
			case last && value == gone{}:
				delete(holder, step)
			case last:
				holder[step] = value
			case holder[step] == nil:
				holder[step] = map[string]any{}
			}
			at = holder[step]
		case []any:
			index, err := strconv.Atoi(step)
			check.Must(t, err)
			if last {
				holder[index] = value
			}
			at = holder[index]
		default:
			t.Fatalf("%s is nothing of an object", path)
		}
	}
	return changed
}

// texts returns the texts of mistakes.
func texts(mistakes field.ErrorList) []string {
	var told []string
	for _, mistake := range mistakes {
		told = append(told, mistake.Error())
	}
	return told
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	check.Must(t, err)
	return string(text)
}

// scalars counts the values in an object that are neither objects nor lists.
func scalars(value any) int {
	count := 0
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			count += scalars(value[name])
		}
	case []any:
		for _, item := range value {
			count += scalars(item)
		}
	default:
		count = 1
	}
	return count
}
