package strict

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check/hostile"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An Application may have 4 MiB of definitions, each of more than 700 KB, or 300 objects. It is admitted within the time of a webhook,
// its objects are created and repaired, and admission and agent stay below their limits of memory.
func TestLargeApplications(t *testing.T) {
	w := wide
	for _, c := range []struct {
		name     string
		manifest func(namespace string) string
		resource schema.GroupVersionResource
	}{
		{"4 MiB", func(namespace string) string { return definitions(namespace, 5, manifest.MaxBytes/5-100) }, kit.Definitions},
		{"300 objects", func(namespace string) string { return configMaps(namespace, manifest.MaxResources) }, kit.ConfigMaps},
	} {
		t.Run(c.name, func(t *testing.T) {
			namespace := w.namespace(t)
			file := filepath.Join(t.TempDir(), "large.yaml")
			text := c.manifest(namespace)
			kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
			w.grantAccount(t, namespace)
			started := time.Now()
			w.plugin(t, "create", "app", "--namespace", namespace, "--filename", file)
			admitted := time.Since(started)
			w.App(namespace, "app").Annotate(t, "deletion-policy", string(application.Delete))
			w.reconciled(t, namespace, "app")
			took := time.Since(started)
			cm := w.App(namespace, "app").Stored(t)
			size := 0
			for _, value := range cm.BinaryData {
				size += len(value)
			}
			for _, value := range cm.Data {
				size += len(value)
			}
			t.Logf("%d bytes of text: admitted by the plugin in %s, with its dry runs; reconciled after %s; %d bytes in the ConfigMap", len(text), admitted, took, size)

			one := w.App(namespace, "app").Read(t).Inventory[0]
			w.Change(t, c.resource, one.Namespace, one.Name, `{"metadata": {"labels": {"team": "red"}}}`)
			w.EventuallyField(t, "blue", c.resource, one.Namespace, one.Name, "metadata", "labels", "team")
			w.gone(t, namespace, "app")
		})
	}
	for _, process := range w.Cluster.Processes() {
		program, _, _ := strings.Cut(process.Name(), "-")
		if program != "webhook" && program != "agent" {
			continue
		}
		select {
		case <-process.Exited():
			continue
		default:
		}
		limit := hostile.LimitOf(t, "base/"+program+"/deployment.yaml")
		peak := kit.PeakMemory(t, process.PID())
		t.Logf("%s had at most %d MiB", process.Name(), peak>>20)
		if peak > limit {
			t.Errorf("more than its limit of %d MiB", limit>>20)
		}
	}
}

// definitions returns definitions with so many bytes each, which repeat themselves like those that have a Pod template.
func definitions(group string, count, bytes int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: song%ds.%s.example.com
  labels: {team: blue}
spec:
  group: %s.example.com
  scope: Namespaced
  names: {kind: Song%d, plural: song%ds, singular: song%d, listKind: Song%dList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
`, i, group, group, i, i, i, i)
		for end, field := b.Len()+bytes-800, 0; b.Len() < end; field++ {
			fmt.Fprintf(&b, "              field%d:\n                type: string\n                description: >-\n                  %s\n", field,
				strings.Repeat(fmt.Sprintf("Field %d of %d is a text that a controller reads, and that says what a field of this kind means. ", field%50, field), 4))
		}
		b.WriteString("---\n")
	}
	return b.String()
}

func configMaps(namespace string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d, namespace: %s, labels: {team: blue}}, data: {a: %q}}\n---\n", i, namespace, strings.Repeat("x", 100))
	}
	return b.String()
}
