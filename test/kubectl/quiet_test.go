package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// quiet is how long the agent must leave the objects alone.
const quiet = 10 * time.Second

// One command makes an Application of what people have. Afterwards the agent writes nothing,
// although an autoscaler and an injector do.
func TestWhatWasCreatedStaysUntouched(t *testing.T) {
	kit.Long(t, "it waits for writes that must not be")
	kit.Must(t, installed.Look())
	namespace := kit.UniqueName("quiet")
	namespaceFor(t, namespace)
	apps := map[string][]string{
		"app-shop": {"-f", "testdata/create/shop.yaml"}, "app-store": {"-f", "testdata/create/store.yaml"}, "app-batch": {"-f", "testdata/create/batch.yaml"},
		"site": {"-k", "testdata/create/site"}, "many": {"-R", "-f", treeOf(t, 35)},
	}
	for name, from := range apps {
		said, _ := krake(t, append([]string{"create", name, "-n", namespace}, from...)...)
		t.Logf("kubectl krake create %s %s: %s", name, strings.Join(from, " "), said)
	}
	hub.KubectlWith(t, strings.ReplaceAll(objectsToImport(20), "web-", "live-"), "apply", "-n", namespace, "-f", "-")
	hub.Kubectl(t, "-n", namespace, "autoscale", "deployment/live-20", "--min=2", "--max=5")
	hub.Kubectl(t, "-n", namespace, "patch", "deployment/live-20", "--field-manager=injector",
		`--patch={"spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "proxy:1"}]}}}}`)
	said, _ := krake(t, "import", "live", "deployment/live-20", "service/live-20", "horizontalpodautoscaler/live-20", "-n", namespace)
	t.Logf("kubectl krake import live: %s", said)
	apps["live"] = nil
	for name := range apps {
		hub.App(namespace, name).MustBe(t, application.StateRunning)
	}
	for _, deployment := range []string{"shop", "live-20"} { // the autoscalers have no metrics, and still demand two Pods
		hub.EventuallyField(t, int64(2), kit.Deployments, namespace, deployment, "spec", "replicas")
	}

	since := hub.Mark(t)
	<-time.After(quiet)
	for _, r := range since.Requests(t, kit.By(kit.LocalAgent), kit.In(namespace), kit.Request.IsWork) {
		if _, isApplication := apps[r.Name()]; r.Object.Resource != "configmaps" || !isApplication {
			t.Errorf("within %s: %s", quiet, r)
		}
	}
}

// treeOf returns a folder with this many objects in files and folders.
func treeOf(t *testing.T, objects int) string {
	t.Helper()
	folder := t.TempDir()
	for n := range objects {
		file := filepath.Join(folder, fmt.Sprint("part-", n%5), fmt.Sprintf("%02d.yaml", n))
		kit.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d}\ndata: {number: \"%d\"}\n", n, n)
		if n%3 == 0 {
			text = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: many-%d}\nspec: {selector: {app: many}, ports: [{port: 80}]}\n", n)
		}
		kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return folder
}
