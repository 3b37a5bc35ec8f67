package schema_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// If a thousand objects differ only in their names, the pool stores the observed fields once.
func TestPoolSharesWhatIsEqual(t *testing.T) {
	const many = 1000
	manifest := func(i int) object {
		data := object{}
		for field := range 50 {
			data[fmt.Sprint("field-", field)] = "x"
		}
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": fmt.Sprint("config-", i)}, "data": data}
	}
	kept := func(share func(schema.Schema) schema.Schema) float64 {
		var before, after runtime.MemStats
		schemas := make([]schema.Schema, many)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range schemas {
			schemas[i] = share(defaultOf(t, manifest(i)))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(schemas)
		return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / many
	}
	alone := kept(func(s schema.Schema) schema.Schema { return s })
	var pool schema.Pool
	if shared := kept(pool.Share); shared > alone/2 {
		t.Errorf("a schema takes %.0f bytes, shared %.0f", alone, shared)
	} else {
		t.Logf("a schema takes %.0f bytes, shared %.0f", alone, shared)
	}
}
