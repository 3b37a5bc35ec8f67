package pause

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// writable is a hub that accepts writes, and the cluster with the objects.
type writable struct {
	*clitest.Hub

	mu sync.Mutex
	// live is the Deployment demo/web, or nil.
	live *unstructured.Unstructured
	// meanwhile runs once before the first write, as another client that is faster.
	meanwhile func()
	// refusal is admission's answer to writes. warning is added to each answer.
	refusal *apierrors.StatusError
	warning string
	// writes are the patches that were applied, with the prefix "dry" for a dry run.
	writes []string
}

func newWritable(t *testing.T, configMaps ...*corev1.ConfigMap) *writable {
	t.Helper()
	w := &writable{Hub: clitest.NewHub(t, configMaps...)}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.URL = server.URL
	return w
}

const deployments = "/apis/apps/v1/namespaces/demo/deployments/web"

func (w *writable) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if discovered, ok := clitest.NewCluster()[r.URL.Path]; ok {
		clitest.Answer(out, http.StatusOK, discovered)
		return
	}
	switch {
	case r.Method == http.MethodPatch:
		w.servePatch(out, r)
	case r.URL.Path == deployments:
		w.serveObject(out)
	default:
		w.Hub.ServeHTTP(out, r)
	}
}

func (w *writable) serveObject(out http.ResponseWriter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live == nil {
		clitest.NotFound(out, "deployments", "web")
		return
	}
	clitest.Answer(out, http.StatusOK, w.live)
}

// servePatch applies a merge patch of annotations, unless it is of another version.
func (w *writable) servePatch(out http.ResponseWriter, r *http.Request) {
	if meanwhile := w.meanwhile; meanwhile != nil {
		w.meanwhile = nil
		meanwhile()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var patch struct {
		Metadata struct {
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || r.Header.Get("Content-Type") != string(types.MergePatchType) {
		w.T.Errorf("patch %+v: %v", patch, err)
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	stored := w.stored(r.URL.Path, name)
	if w.warning != "" {
		out.Header().Set("Warning", fmt.Sprintf("299 - %q", w.warning))
	}
	switch {
	case stored.GetResourceVersion() != patch.Metadata.ResourceVersion:
		clitest.AnswerError(out, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, name, io.ErrNoProgress))
		return
	case w.refusal != nil:
		clitest.AnswerError(out, w.refusal)
		return
	}
	said, err := json.Marshal(patch.Metadata.Annotations)
	if err != nil {
		w.T.Error(err)
	}
	query := r.URL.Query()
	w.writes = append(w.writes, strings.TrimSpace(strings.Join([]string{
		map[bool]string{true: "dry"}[query.Get("dryRun") == "All"], query.Get("fieldManager"), name, string(said),
	}, " ")))
	clitest.Answer(out, http.StatusOK, stored)
}

func (w *writable) stored(path, name string) metav1.Object {
	if path == deployments {
		return w.live
	}
	return w.Hub.Stored(name)
}

// command runs a command with a user's flags.
func (w *writable) command(t *testing.T, command func(*env.Environment) *cobra.Command, arguments string) (out, errOut string, err error) {
	t.Helper()
	return clitest.Run(t, w.Hub, func(e *env.Environment) *cobra.Command {
		flags, folder := e.NewFlags(), t.TempDir() // a separate cache
		flags.APIServer, flags.Namespace, flags.KubeConfig, flags.CacheDir = e.Hub.APIServer, e.Hub.Namespace, e.Hub.KubeConfig, &folder
		e.Hub = flags
		return command(e)
	}, strings.Fields(arguments)...)
}

func (w *writable) check(t *testing.T, command func(*env.Environment) *cobra.Command, arguments, out, errOut, failure string, writes ...string) {
	t.Helper()
	w.writes = nil
	gotOut, gotErrOut, err := w.command(t, command, arguments)
	got := check.Message(err)
	if gotOut != out || gotErrOut != errOut || got != failure {
		t.Errorf("%s\nprints %q\nwarns  %q\nfails  %q\nwant\n       %q\n       %q\n       %q", arguments, gotOut, gotErrOut, got, out, errOut, failure)
	}
	check.Equal(t, arguments+": writes", writes, w.writes)
}

func TestHold(t *testing.T) {
	labelled := clitest.Created("shop")
	labelled.Labels = map[string]string{"team": "shop"}
	w := newWritable(t, clitest.WebApp(t), labelled, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "other", Labels: map[string]string{"team": "shop"}}})
	const hold = ` {"krake.dev/hold-until":"2026-01-02T13:00:00Z"}`
	w.check(t, newHoldCommand, "web", "application.krake.dev/web held until 2026-01-02T13:00:00Z\n", "", "", "krake-cli web"+hold)
	w.check(t, newHoldCommand, "web --for 60m --dry-run=client", "application.krake.dev/web held until 2026-01-02T13:00:00Z (dry run)\n", "", "")
	w.check(t, newHoldCommand, "web --until 2026-01-02T13:00:00Z --dry-run=server",
		"application.krake.dev/web held until 2026-01-02T13:00:00Z (server dry run)\n", "", "", "dry krake-cli web"+hold)
	w.check(t, newHoldCommand, "-l team=shop", "application.krake.dev/shop held until 2026-01-02T13:00:00Z\n", "", "", "krake-cli shop"+hold)
	w.check(t, newHoldCommand, "web nobody other shop",
		"application.krake.dev/web held until 2026-01-02T13:00:00Z\napplication.krake.dev/shop held until 2026-01-02T13:00:00Z\n", "",
		"application.krake.dev/nobody: there is no Application nobody in namespace demo: name another namespace by -n, or see all by kubectl krake get -A\n"+
			"application.krake.dev/other: ConfigMap demo/other is no Application: it has no annotation krake.dev/application",
		"krake-cli web"+hold, "krake-cli shop"+hold)
	w.check(t, newHoldCommand, "-l team=nobody", "", "", "namespace demo has no Application with team=nobody: see kubectl krake get")
	w.check(t, newHoldCommand, "web --dry-run=maybe", "", "", `--dry-run: "maybe" has to be one of none, client, server`)
	w.check(t, newHoldCommand, "web --for=1h --until=13:00", "", "", "if any flags in the group [for until] are set none of the others can be; [for until] were all set")
	w.Put(clitest.Created("web", application.HoldUntilAnnotation, "2026-01-03T08:00:00Z", application.HeldByAnnotation, "ben"))
	w.check(t, newHoldCommand, "web", "application.krake.dev/web held until 2026-01-02T13:00:00Z\n",
		"Warning: application.krake.dev/web: it was held until 2026-01-03T08:00:00Z by ben, and this hold ends earlier: "+
			"to restore the former one, kubectl krake hold web --until 2026-01-03T08:00:00Z\n", "", "krake-cli web"+hold)
	w.Put(clitest.WebApp(t))
	w.warning = "metadata.annotations[krake.dev/hold-until]: mode observe reverts nothing"
	w.check(t, newHoldCommand, "web", "application.krake.dev/web held until 2026-01-02T13:00:00Z\n", "Warning: "+w.warning+"\n", "", "krake-cli web"+hold)
}

// The webhook's refusal for missing rights is shown unchanged.
func TestHoldIsRefused(t *testing.T) {
	w := newWritable(t, clitest.WebApp(t))
	w.refusal = apierrors.NewForbidden(schema.GroupResource{Group: application.Domain, Resource: "applications"}, "web",
		fmt.Errorf(`an Application does nothing that its user may not do: user "anna" may not patch deployments.apps`))
	w.check(t, newSuspendCommand, "web", "", "", "application.krake.dev/web: "+w.refusal.Error())
}

// Another client was faster: the command reads the object again, and decides again.
func TestConflict(t *testing.T) {
	w := newWritable(t, clitest.WebApp(t))
	w.meanwhile = func() { w.Put(clitest.WebApp(t)) }
	w.check(t, newSuspendCommand, "web", "application.krake.dev/web suspended\n", "", "", `krake-cli web {"krake.dev/mode":"suspend"}`)
	w.meanwhile = func() {
		w.Put(clitest.Recorded(t, clitest.Admitted(t, clitest.Created("web", application.ModeAnnotation, "suspend")), nil))
	}
	w.check(t, newSuspendCommand, "web", "application.krake.dev/web suspended already\n", "", "")
	w.check(t, newSuspendCommand, "web deployment/web", "", "", "deployment/web: there is no mode of a single object: hold it (kubectl krake hold web deployment/web)")
}

func TestHoldOneObject(t *testing.T) {
	stored := clitest.WebApp(t)
	w := newWritable(t, stored)
	app := apps.ItemOf(stored).App
	w.live = &unstructured.Unstructured{Object: liveWeb(app)}
	const line = "deployment.apps/web held until 2026-01-02T13:00:00Z\n"
	const patch = `krake-cli web {"krake.dev/hold-until":"2026-01-02T13:00:00Z"}`
	for _, kind := range []string{"deployment", "Deployment", "deploy", "deployments.apps", "deployments.v1.apps"} {
		w.check(t, newHoldCommand, "web "+kind+"/web", line, "", "", patch)
	}
	w.check(t, newHoldCommand, "web deployment/web --for 5h --dry-run=client", "deployment.apps/web held until 2026-01-02T17:00:00Z (dry run)\n",
		"Warning: deployment.apps/web: an agent holds an object for 4h at most, unless its --max-hold says otherwise, so that this one is repaired from "+
			"2026-01-02T16:00:00Z on: to hold the whole Application for longer, kubectl krake hold web\n", "")
	w.check(t, newHoldCommand, "web deployment/api", "", "", "the Application web has no object deployment/api: it has deployment/web, service/web")
	w.meanwhile = func() { w.live.SetResourceVersion("2") }
	w.check(t, newHoldCommand, "web deployment/web", line, "", "", patch)

	w.live = &unstructured.Unstructured{Object: liveWeb(app, application.HoldUntilAnnotation, "2026-01-02T13:00:00Z")}
	w.check(t, newResumeCommand, "web deployment/web", "deployment.apps/web resumed\n", "", "", `krake-cli web {"krake.dev/hold-until":null}`)
	w.live = nil
	w.check(t, newHoldCommand, "web deployment/web", "", "", "deployment.apps/web: cluster local has no such object now: see kubectl krake describe web")

	_, _, err := w.command(t, newHoldCommand, "web gadget/web")
	check.Fails(t, "a kind that there is not", err, "gadget")
}

// The objects are on another cluster, which the command does not contact.
func TestHoldOneObjectElsewhere(t *testing.T) {
	w := newWritable(t, clitest.Recorded(t, clitest.Admitted(t, clitest.Created("web", application.ClusterAnnotation, "east")), nil))
	w.check(t, newHoldCommand, "web deployment/web", "", "", "the objects are on cluster east: name it by --target-context or --target-kubeconfig")
}
