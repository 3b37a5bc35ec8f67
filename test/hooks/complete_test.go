package hooks

import (
	"net/http"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// job is a workload that reports its completion.
const job = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: before, image: "web:1"}]
      containers: [{name: web, image: "web:1", env: [{name: OTHER, value: "1"}]}, {name: beside, image: "web:1"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: green}
`

// An Application reports its completion with only what its container has. It is deleted
// with all its objects and Secrets, even if it has the hook shutdown.
func TestComplete(t *testing.T) {
	t.Parallel()
	for name, hooks := range map[string]string{"alone": "complete", "beside shutdown": "complete,shutdown"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			a := newApp(t, namespace, "web", job, settings{"hooks": hooks})
			a.MustBe(t, application.StateRunning)
			p := mustStartPod(t, env.hub, namespace, "web")
			if url := "https://krake-hooks.krake-agents.svc/kubernetes/namespaces/" + namespace + "/applications/web/complete"; p.says(application.Complete).url != url {
				t.Errorf("the URL is %q, want %q", p.says(application.Complete).url, url)
			}
			if want := 2 + 2*len(strings.Split(hooks, ",")); len(a.objects(t, env.hub)) != want {
				t.Errorf("it has %v, want %d objects", a.objects(t, env.hub), want)
			}
			p.mustAnswer(t, env.local, "a wrong token", p.says(application.Complete).with("wrong"), http.StatusUnauthorized)
			got := p.mustAnswer(t, env.local, "complete", p.says(application.Complete), http.StatusOK)
			if got.state != application.StateReady {
				t.Errorf("it is %s, want %s", got.state, application.StateReady)
			}
			a.mustGo(t, env.hub)
			p.mustAnswer(t, env.local, "once more, when it is gone", p.says(application.Complete), http.StatusUnauthorized)
		})
	}
}

const shutdownService = `---
{apiVersion: v1, kind: Service, metadata: {name: shutdown}, spec: {selector: {app: web}, ports: [{port: 80}]}}
`
