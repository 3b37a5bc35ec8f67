package strict

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

const web = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red, size: large}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs}
data: {color: red}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1}]}
`

const webService = `---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// In strict mode the agent makes every write to the
// target as the account of the Application: it creates, adopts, repairs, marks, deletes and
// releases. The ConfigMaps among the objects show that the policy on the ConfigMaps of agents
// does not restrict an account.
func TestEveryWriteIsTheAccountsOwn(t *testing.T) {
	w := narrow
	begin := w.Mark(t)
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "edit")
	w.Make(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {color: blue}}")
	w.apply(t, namespace, "app", web+webService, kit.Annotation("adopt", "true"))
	w.reconciled(t, namespace, "app")
	w.EventuallyField(t, "red", kit.ConfigMaps, namespace, "theirs", "data", "color")

	w.Change(t, kit.Services, namespace, "web", `{"spec": {"selector": {"app": "other"}}}`)
	w.EventuallyField(t, "web", kit.Services, namespace, "web", "spec", "selector", "app")
	w.Change(t, kit.Deployments, namespace, "web", `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}`)
	w.Change(t, kit.ConfigMaps, namespace, "settings", `{"data": {"color": "blue"}}`)
	w.EventuallyField(t, "red", kit.ConfigMaps, namespace, "settings", "data", "color")
	mark := kit.Field(w.Get(t, kit.ConfigMaps, namespace, "settings"), "metadata", "labels", "krake.dev/owned-by")
	w.Change(t, kit.ConfigMaps, namespace, "settings", `{"metadata": {"labels": {"krake.dev/owned-by": null}}}`)
	w.EventuallyField(t, mark, kit.ConfigMaps, namespace, "settings", "metadata", "labels", "krake.dev/owned-by")
	kit.Must(t, w.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	w.EventuallyField(t, "red", kit.ConfigMaps, namespace, "settings", "data", "color")
	w.reconciled(t, namespace, "app")

	w.apply(t, namespace, "app", web, kit.Annotation("adopt", "true")) // without the Service
	w.EventuallyGone(t, kit.Services, namespace, "web")

	w.apply(t, namespace, "app-orphan", "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}",
		kit.Annotation("deletion-policy", "orphan"))
	w.reconciled(t, namespace, "app-orphan")
	w.gone(t, namespace, "app", "app-orphan")
	w.EventuallyGone(t, kit.ConfigMaps, namespace, "settings")
	w.EventuallyGone(t, kit.Deployments, namespace, "web")
	for _, name := range []string{"theirs", "kept"} {
		object := w.Get(t, kit.ConfigMaps, namespace, name)
		if object == nil || object.GetAnnotations()["krake.dev/owner"] != "" {
			t.Errorf("%s was not let go: %v", name, object)
		}
	}

	counts := map[string]int{}
	for _, r := range work(t, begin, namespace) {
		counts[r.Verb]++
		if want := "system:serviceaccount:" + namespace + ":krake-deployer"; r.As.Username != want || !slices.Contains(r.As.Groups, "system:serviceaccounts:"+namespace) {
			t.Errorf("not as %s: %s", want, r)
		}
		if r.How.ImpersonationConstraint != "impersonate:serviceaccount" {
			t.Errorf("by the right to be somebody else in everything, and not in this: %s", r)
		}
		if !r.IsAccepted() && r.Status.Code != http.StatusConflict { // it exists already, and is adopted
			t.Errorf("refused: %s", r)
		}
	}
	t.Logf("writes to the target: %v", counts)
	for verb, least := range map[string]int{"create": 5, "patch": 6, "delete": 3} {
		if counts[verb] < least {
			t.Errorf("%d times %s, want at least %d", counts[verb], verb, least)
		}
	}
	if others := slices.Sorted(maps.Keys(counts)); len(others) != 3 {
		t.Errorf("the agent writes by %v", others)
	}
}
