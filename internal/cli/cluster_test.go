package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// cluster is an API server that serves objects by their paths, and the discovery of their
// kinds. Its reads have the same results as those of a real one. It accepts only dry runs, and
// answers them with the warning at the path "warning", and the ConfigMap at the path "answer".
type cluster map[string]any

func newCluster() cluster {
	return cluster{
		"/api":  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}}}}},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", SingularName: "configmap", Namespaced: true, Kind: "ConfigMap", Verbs: metav1.Verbs{"get"}},
			{Name: "secrets", SingularName: "secret", Namespaced: true, Kind: "Secret", Verbs: metav1.Verbs{"get"}},
			{Name: "services", SingularName: "service", Namespaced: true, Kind: "Service", ShortNames: []string{"svc"}, Verbs: metav1.Verbs{"get"}},
			{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: metav1.Verbs{"get"}},
		}},
		"/apis/apps/v1": metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", ShortNames: []string{"deploy"}, Verbs: metav1.Verbs{"get"}},
		}},
	}
}

func (c cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, ok := c[r.URL.Path]
	switch {
	case r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "All":
		c.answerDryRun(w, r)
	case !ok || r.Method != http.MethodGet:
		notFound(w, "", r.URL.Path)
	default:
		answer(w, codeOf(object), object)
	}
}

func codeOf(object any) int {
	if status, failed := object.(metav1.Status); failed {
		return int(status.Code)
	}
	return http.StatusOK
}

func (c cluster) answerDryRun(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	c["sent"] = r.Method + " " + string(body)
	if warning, ok := c["warning"].(string); ok {
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	var result any = corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	if completed, ok := c["answer"]; ok {
		result = completed
	}
	if refused, ok := c["dry run"].(metav1.Status); ok {
		result = refused
	}
	answer(w, codeOf(result), result)
}

// store adds the Application demo/web after admission.
func (c cluster) store(t *testing.T, manifest, observerSchema string) *corev1.ConfigMap {
	t.Helper()
	cm := prepared(t, manifest, observerSchema)
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	c["/api/v1/namespaces/demo/configmaps/web"] = cm
	return cm
}

func (c cluster) run(t *testing.T, files map[string]string, arguments ...string) (out, says string, status int) {
	t.Helper()
	server := httptest.NewServer(c)
	defer server.Close()
	return invoke(t, files, append(arguments, "--server", server.URL, "--namespace", "demo", "--cache-dir", t.TempDir())...)
}

// check runs a command, and fails unless it has this status, and its output and its errors have these parts. An empty part
// means that there is no text.
func (c cluster) check(t *testing.T, files map[string]string, arguments, out, says string, status int) {
	t.Helper()
	gotOut, gotSays, got := c.run(t, files, strings.Fields(arguments)...)
	if !strings.Contains(gotOut, out) || (gotOut == "") != (out == "") || !strings.Contains(gotSays, says) || (gotSays == "") != (says == "") || got != status {
		t.Errorf("%s: %d: %s%s\nwant %d: %s%s", arguments, got, gotOut, gotSays, status, out, says)
	}
}

// invoke runs kubectl krake in a folder with these files. The file "-" is its input.
func invoke(t *testing.T, files map[string]string, arguments ...string) (out, says string, status int) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		check.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	t.Chdir(folder)
	t.Setenv("KUBECONFIG", filepath.Join(folder, "none"))
	streams, in, stdout, stderr := genericiooptions.NewTestIOStreams()
	in.WriteString(files["-"])
	command := NewCommand(streams)
	command.SetArgs(arguments)
	status = Fail(command.ExecuteContext(t.Context()), stderr)
	return stdout.String(), stderr.String(), status
}

const (
	liveDeployment = "/apis/apps/v1/namespaces/demo/deployments/web"
	liveService    = "/api/v1/namespaces/demo/services/web"
)

// The exit status reports whether there is a difference. If an object cannot be compared, the
// others are still reported.
func TestDiffOfWhatIsStored(t *testing.T) {
	c := newCluster()
	c.store(t, deployment+"---"+service, "")
	c[liveDeployment] = markedAs("web", "1", parsed(t, deployment))
	c[liveService] = markedAs("web", "1", parsed(t, service))
	c.check(t, nil, "diff web", "", "", 0)
	c[liveService] = markedAs("web", "1", parsed(t, strings.Replace(service, "80", "81", 1)))
	if out, says, status := c.run(t, nil, "diff", "web"); !strings.Contains(out, "this would be removed: {\"port\":81}\n") || strings.Contains(out, "Deployment") || says != "" || status != 1 {
		t.Errorf("a Service differs: %d: %s%s", status, out, says)
	}
	c[liveDeployment] = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "you may not", Code: http.StatusForbidden}
	c.check(t, nil, "diff web", "this would be removed: {\"port\":81}\n", "read apps/v1 Deployment demo/web: you may not", 2)
	delete(c, "/apis/apps/v1")
	if out, says, status := c.run(t, nil, "diff", "web", "nowhere"); !strings.Contains(out, "+  - port: 80") || !strings.Contains(says, "the cluster with the objects does not serve it") || !strings.Contains(says, "there is no Application nowhere") || status != 2 {
		t.Errorf("a kind is not served: %d: %s%s", status, out, says)
	}
}

// An object that was removed from the Application, but still exists, is reported if it is
// ours.
func TestDiffOfWhatLeft(t *testing.T) {
	c := newCluster()
	cm := c.store(t, service, "")
	cm.Data[application.InventoryKey(application.LocalCluster)] = `[{"apiVersion":"v1","kind":"Service","namespace":"demo","name":"web"},{"apiVersion":"apps/v1","kind":"Deployment","namespace":"demo","name":"web"}]`
	c[liveService] = markedAs("web", "1", parsed(t, service))
	for _, gone := range []any{nil, parsed(t, deployment)} {
		if c[liveDeployment] = gone; gone == nil {
			delete(c, liveDeployment)
		}
		c.check(t, nil, "diff web", "", "", 0)
	}
	c[liveDeployment] = markedAs("web", "1", parsed(t, deployment))
	c.check(t, nil, "diff web", "# apps/v1 Deployment demo/web: it left the Application, and would be deleted\n", "", 1)
}

// The output for an Application that no agent carries out.
func TestDiffOfWhatIsNotCarriedOut(t *testing.T) {
	c := newCluster()
	cm := c.store(t, service, "")
	cm.Data[application.LearnedKey] = "{"
	c[liveService] = markedAs("web", "1", parsed(t, service))
	c.check(t, nil, "diff web", "", "what was learned for the Application demo/web cannot be read", 0)
	delete(cm.Data, application.LearnedKey)
	cm.Labels = nil
	c.check(t, nil, "diff web", "", "the Application demo/web was never admitted", 0)
	cm = c.store(t, service, "")
	cm.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	c.check(t, nil, "diff web", "# Application demo/web: it is being deleted", "", 1)
	cm.Data[application.ManifestKey] = "kind: x"
	c.check(t, nil, "diff web", "", "error: the Application demo/web: refused: data.spec.manifest[0].apiVersion", 2)
}

const fileHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}}\ndata:\n  spec.manifest: |"

func inFile(manifest string) map[string]string {
	return map[string]string{"web.yaml": fileHead + strings.ReplaceAll(manifest, "\n", "\n    ") + "\n"}
}

// For a file, the output lists what would be created and changed, whether or not it is stored.
func TestDiffOfAFile(t *testing.T) {
	c := newCluster()
	internal := strings.Replace(service, "NodePort", "ClusterIP", 1)
	for _, step := range []struct {
		why    string
		live   func() // later changes on the cluster
		file   string
		want   string // empty: no output
		says   string // for stderr
		status int
	}{
		{"a Service would be created", func() {}, service, "@@ -0,0 +1,8 @@", "", 1},
		{"one is there", func() { c[liveService] = parsed(t, service) }, service, "conflict: it exists", "", 1},
		{"adoption was asked for by an annotation that the file has not, and that stays, as after kubectl apply", func() {
			c.store(t, service, "").Annotations[application.AdoptAnnotation] = "true"
		}, service, "it would be adopted", "", 1},
		{"the type would be changed", func() {
			c.store(t, internal, "")
			c[liveService] = markedAs("web", "1", parsed(t, internal))
		}, service, "@@\n spec:\n   ports:\n   - port: 80\n-  type: ClusterIP\n+  type: NodePort\n", "", 1},
		{"it is what is stored", func() {}, internal, "", "", 0},
		{"it would be refused", func() {}, strings.Replace(service, "name: web", "name: web, uid: x", 1), "", "web.yaml:8: data.spec.manifest[0].metadata.uid: Forbidden", 2},
	} {
		step.live()
		t.Log(step.why)
		c.check(t, inFile(step.file), "diff -f web.yaml", step.want, step.says, step.status)
	}
}

// A command reports missing or wrong arguments before any request to a cluster.
func TestArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		"diff":                           "name Applications, or a file by -f, and not both",
		"diff -f nowhere":                "no such file",
		"history a b":                    "name one Application, and not 2",
		"schema a b":                     "name one Application, or one object, and not 2",
		"schema":                         "the Application is missing",
		"schema web -f x":                "add --propose",
		"schema --propose a/b -f x":      "and not both",
		"schema --propose web":           "is not of the form KIND/NAME",
		"blame":                          "name one Application: kubectl krake blame NAME",
		"get configmap/web":              `"configmap/web" is no name of an Application: name it without a kind, as web`,
		"get -l !!":                      "--selector: unable to parse requirement",
		"schema web --explain a -o json": "leave out -o json",
		"blame web -o name":              "it has to be one of table, wide, json, yaml",
		"schema --propose":               "name an object as KIND/NAME, or a manifest by -f",
		"schema --propose --explain a b": "use one of them",
		"schema web --explain ..":        "is no path",
	} {
		cluster{}.check(t, nil, arguments, "", want, 2)
	}
}

func TestSchemaCommand(t *testing.T) {
	c := newCluster()
	c.store(t, deployment+"---"+service, serviceSchema)
	c[liveDeployment], c[liveService] = parsed(t, scaled), parsed(t, service)
	manifest := map[string]string{"service.yaml": service + "---" + strings.Replace(service, "name: web", "name: other", 1)}
	for _, one := range []struct {
		arguments, want, says string
		status                int
	}{
		{"schema web", "kind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - nodePort: null\n    port: null\n  - observer_schema_list_max_length: 2\n    observer_schema_list_min_length: 1\n  type: null\n---\napiVersion: apps/v1\nkind: Deployment\n", "", 0},
		{"schema web --explain spec.replicas", "v1 Service web: spec.replicas is not observed: the observer schema does not name it (line 5 of data.spec.observer_schema is where it would be)\n", "", 0},
		{"schema web --explain spec.replicas --object deployment/web", "apps/v1 Deployment web: spec.replicas is observed: the object has no observer schema, so that all is observed that the manifest says\n", "", 0},
		{"schema --propose deploy/web", "# not observed, as kube-controller-manager (scale) writes it: spec.replicas\n", "", 0},
		{"schema --propose song/other", "", "find the kind song", 2},
		{"schema --propose -f service.yaml", "  type: null\n---\n# Observer schema of v1 Service other.\n", "v1 Service demo/other: it is not on the cluster", 0},
	} {
		c.check(t, manifest, one.arguments, one.want, one.says, one.status)
	}
	if out, _, _ := c.run(t, nil, "schema", "web", "--explain", "spec.replicas", "--object", "deployment/web"); strings.Contains(out, "Service") {
		t.Errorf("another object is told of: %s", out)
	}
}

func TestBlameCommand(t *testing.T) {
	c := newCluster()
	c.store(t, deployment+"---"+service, deploymentSchema)
	c[liveDeployment] = markedAs("web", "1", parsed(t, scaled))
	for _, one := range []struct {
		arguments, want, says string
		status                int
	}{
		{"blame web", "v1 Service demo/web\n  there is no such object\n", "", 0},
		{"blame web -o json", `"kind": "BlameList"`, "", 0},
		{"blame web -o yaml --object deployment/web", "path: spec.replicas\n", "", 0},
		{"blame web --object job/web", "", "the Application has no object job/web: it has deployment/web, service/web", 2},
		{"blame other", "", "there is no Application other", 2},
	} {
		out, says, status := c.run(t, nil, strings.Fields(one.arguments)...)
		if !strings.Contains(out, one.want) || !strings.Contains(says, one.says) || status != one.status || strings.Contains(out, "hunter2") {
			t.Errorf("%s: %d: %s%s, want %s%s", one.arguments, status, out, says, one.want, one.says)
		}
	}
}

// The webhook is asked about a file, with a dry run. It may not be asked by all users.
func TestDiffOfAFileAsksTheWebhook(t *testing.T) {
	const warning = `data.spec.manifest[0]: the agent may not create services in namespace "demo": have an administrator grant it`
	for why, c := range map[string]struct {
		refused any
		says    string
		status  int
	}{
		"it warns":           {nil, "web.yaml:7: warning: " + warning + "\n", 1},
		"the user may not":   {failure(http.StatusForbidden, metav1.StatusReasonForbidden), "web.yaml:7: warning: " + warning + "\nnot admitted now: no\n", 1},
		"it refuses":         {failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), "web.yaml:7: warning: " + warning + "\nerror: no\n", 2},
		"it does not answer": {failure(http.StatusInternalServerError, metav1.StatusReasonInternalError), "web.yaml:7: warning: " + warning + "\nnot admitted now: no\n", 1},
	} {
		t.Run(why, func(t *testing.T) {
			hub := newCluster()
			hub["warning"], hub["dry run"] = warning, c.refused
			file := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}}\ndata:\n  spec.manifest: |\n" +
				"    # the Service\n    apiVersion: v1\n    kind: Service\n    metadata: {name: web}\n    spec: {ports: [{port: 80}]}\n"
			_, says, status := hub.run(t, map[string]string{"web.yaml": file}, "diff", "-f", "web.yaml")
			if says != c.says || status != c.status {
				t.Errorf("%d: %s\nwant %d: %s", status, says, c.status, c.says)
			}
		})
	}
}

// The agent may write the status between the command's two requests: the second one has neither a
// resource version nor what the agent writes.
func TestDiffOfAFileSendsWhatDiffersOnly(t *testing.T) {
	hub := newCluster()
	hub.store(t, strings.TrimPrefix(service, "\n"), "").ResourceVersion = "7"
	file := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}, labels: {team: shop}}\ndata:\n  spec.manifest: |\n" +
		"    " + strings.ReplaceAll(strings.TrimSpace(service), "\n", "\n    ") + "\n"
	if _, says, status := hub.run(t, map[string]string{"web.yaml": file}, "diff", "-f", "web.yaml"); status == 2 {
		t.Fatal(says)
	}
	check.Equal[any](t, "sent", `PATCH {"metadata":{"labels":{"team":"shop"}}}`, hub["sent"])
}
