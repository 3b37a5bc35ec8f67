package clitest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/test/check"
)

// Cluster is an API server that serves objects by their paths, and the discovery of their
// kinds. Its reads have the same results as those of a real one. It accepts only dry runs, and
// answers them with the warning at the path "warning", and the ConfigMap at the path "answer".
type Cluster map[string]any

// NewCluster returns a server that knows some built-in kinds, and has no objects.
func NewCluster() Cluster {
	return Cluster{
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

// ServeHTTP implements http.Handler.
func (c Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, ok := c[r.URL.Path]
	switch {
	case r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "All":
		c.answerDryRun(w, r)
	case !ok || r.Method != http.MethodGet:
		NotFound(w, "", r.URL.Path)
	default:
		Answer(w, codeOf(object), object)
	}
}

func codeOf(object any) int {
	if status, failed := object.(metav1.Status); failed {
		return int(status.Code)
	}
	return http.StatusOK
}

func (c Cluster) answerDryRun(w http.ResponseWriter, r *http.Request) {
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
	Answer(w, codeOf(result), result)
}

// Store adds the Application demo/web after admission.
func (c Cluster) Store(t *testing.T, manifest, observerSchema string) *corev1.ConfigMap {
	t.Helper()
	cm := Prepared(t, manifest, observerSchema)
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	c["/api/v1/namespaces/demo/configmaps/web"] = cm
	return cm
}

// Run runs one of the commands against the cluster, in a folder with these files.
func (c Cluster) Run(t *testing.T, commands func(e *env.Environment) []*cobra.Command, files map[string]string, arguments ...string) (out, says string, status int) {
	t.Helper()
	server := httptest.NewServer(c)
	defer server.Close()
	return Invoke(t, commands, files, append(arguments, "--server", server.URL, "--namespace", "demo", "--cache-dir", t.TempDir())...)
}

// Check runs a command, and fails unless it has this status, and its output and its errors have these parts. An empty part
// means that there is no text.
func (c Cluster) Check(t *testing.T, commands func(e *env.Environment) []*cobra.Command, files map[string]string, arguments, out, says string, status int) {
	t.Helper()
	gotOut, gotSays, got := c.Run(t, commands, files, strings.Fields(arguments)...)
	if !strings.Contains(gotOut, out) || (gotOut == "") != (out == "") || !strings.Contains(gotSays, says) || (gotSays == "") != (says == "") || got != status {
		t.Errorf("%s: %d: %s%s\nwant %d: %s%s", arguments, got, gotOut, gotSays, status, out, says)
	}
}

// Invoke runs kubectl krake in a folder with these files. The file "-" is its input.
func Invoke(t *testing.T, commands func(e *env.Environment) []*cobra.Command, files map[string]string, arguments ...string) (out, says string, status int) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		check.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	t.Chdir(folder)
	t.Setenv("KUBECONFIG", filepath.Join(folder, "none"))
	streams, in, stdout, stderr := genericiooptions.NewTestIOStreams()
	in.WriteString(files["-"])
	command := env.NewRoot(streams, commands)
	command.SetArgs(arguments)
	status = env.Fail(command.ExecuteContext(t.Context()), stderr)
	return stdout.String(), stderr.String(), status
}

// The paths of the live objects.
const (
	LiveDeployment = "/apis/apps/v1/namespaces/demo/deployments/web"
	LiveService    = "/api/v1/namespaces/demo/services/web"
)

const fileHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}}\ndata:\n  spec.manifest: |"

// InFile returns the file web.yaml with an Application of a manifest.
func InFile(manifest string) map[string]string {
	return map[string]string{"web.yaml": fileHead + strings.ReplaceAll(manifest, "\n", "\n    ") + "\n"}
}

// Failure is an answer that is an error.
func Failure(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Message: "no", Code: code}
}
