package health_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/health"
)

// samples returns objects of all relevant shapes.
func samples(t testing.TB) []object {
	var all []object
	for _, c := range examples(t) {
		all = append(all, c.live)
	}
	for _, service := range []string{
		`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 31000}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}, {hostname: a}]}}}`,
		`{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80, nodePort: 31000}]}}`,
		`{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: a, ports: [{port: 80}]}}`,
	} {
		all = append(all, decode(t, service))
	}
	return all
}

// Any value of an object may have any type: the result of Of still keeps the package's
// contract.
func TestOfManagesWhateverTypes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := samples(t)
	for range 20_000 {
		live := runtime.DeepCopyJSON(all[random.IntN(len(all))])
		for range 1 + random.IntN(3) {
			mangle(random, live)
		}
		checkLaws(t, live)
	}
}

// mangle changes a random place of the object to something else.
func mangle(random *rand.Rand, value any) {
	switch value := value.(type) {
	case object:
		if len(value) == 0 {
			return
		}
		keys := slices.Sorted(maps.Keys(value))
		key := keys[random.IntN(len(keys))]
		if random.IntN(3) == 0 {
			value[key] = anything(random)
			return
		}
		mangle(random, value[key])
	case []any:
		if len(value) == 0 {
			return
		}
		i := random.IntN(len(value))
		if random.IntN(3) == 0 {
			value[i] = anything(random)
			return
		}
		mangle(random, value[i])
	}
}

func anything(random *rand.Rand) any {
	values := []any{
		nil, true, "", "True", "a: b", int64(-1), int64(0), int64(math.MaxInt64), 0.5, math.Inf(1),
		object{}, object{"a": nil}, []any{}, []any{nil, int64(1), object{}, []any{}},
	}
	return values[random.IntN(len(values))]
}

func checkLaws(t *testing.T, live object) {
	t.Helper()
	got := health.Of(live)
	if again := health.Of(live); again != got {
		t.Errorf("%v: first %+v, then %+v", live, got, again)
	}
	if len(got.Message) > health.MaxMessage {
		t.Errorf("%v: the message has %d bytes", live, len(got.Message))
	}
	if !slices.Contains([]health.Status{health.StatusCurrent, health.StatusInProgress, health.StatusFailed, health.StatusTerminating, health.StatusUnknown}, got.Status) {
		t.Errorf("%v: status %q", live, got.Status)
	}
	if got.Status == health.StatusCurrent && got.State != health.StateRunning && got.State != health.StateCompleted {
		t.Errorf("%v: is Current and %s", live, got.State)
	}
	if !got.Workload && (got.Pods != health.Pods{} || got.State == health.StateCompleted) {
		t.Errorf("%v: runs nothing and is %+v", live, got)
	}
	state, pods, workload := health.RollUp([]health.Health{got})
	if state != got.State || pods != got.Pods || workload != got.Workload {
		t.Errorf("%v: alone it is rolled up to %s, %+v, %t", live, state, pods, workload)
	}
	if slices.Min([]int64{pods.Desired, pods.Running, pods.Completed, pods.Failed}) < 0 {
		t.Errorf("%v: a negative count in %+v", live, pods)
	}
}
