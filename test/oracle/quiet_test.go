package oracle

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Whole installations, as their projects publish them, need no write after the first: not for a
// value that the API server or a controller adds, and not with time. Then each of their objects drifts once, and
// is repaired as kubectl apply would repair it.
func TestInstallationsAreQuiet(t *testing.T) {
	kit.Long(t, "it waits for writes that must not be")
	files := installs(t)
	if len(files) == 0 {
		t.Skip("KRAKE_INSTALLS names no folder with manifests of public installations")
	}
	var apps []kit.App
	for _, file := range files {
		apps = append(apps, install(t, file)...)
	}
	for _, app := range apps {
		kit.Eventually(t, func() string { return isWell(t, app) }) // a Job counts as ready while its Pods run
	}
	writes := []kit.Filter{kit.By(kit.LocalAgent), kit.Request.IsWork}
	calm := hub.Mark(t).Calm(t, 10*time.Second, writes...)
	// The status of an Application reports an API server that does not answer for a while, and the agent then
	// asks for its rights again. Only the objects are at rest whatever happens.
	isObject := func(r kit.Request) bool {
		isStatus := slices.ContainsFunc(apps, func(app kit.App) bool {
			return r.Resource() == "configmaps" && r.Object.Namespace == app.Namespace && r.Name() == app.Name
		})
		return !isStatus && r.Object.Resource != "events" && r.Object.Resource != "subjectaccessreviews"
	}
	span := duration(t, "KRAKE_ORACLE_QUIET", 20*time.Second)
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(10 * time.Second) {
		if made := calm.Requests(t, append(writes, isObject)...); len(made) > 0 {
			t.Fatalf("the agent wrote to installations at rest: %s", kit.List(made))
		}
	}
	for _, app := range apps {
		kit.Eventually(t, func() string { return isWell(t, app) })
	}
	t.Logf("%d other writes of the agent", len(calm.Requests(t, writes...)))
	t.Logf("%d Applications were quiet for %s", len(apps), span)
	driftOnce(t, apps)
}

// install creates the Applications of a file with kubectl krake create, which makes as few of them
// as possible.
func install(t *testing.T, file string) (apps []kit.App) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	namespace := newNamespace(t, "quiet")
	var documents []string
	for _, resource := range resourcesIn(t, file) {
		documents = append(documents, kit.YAML(t, resource.Object))
	}
	create := exec.CommandContext(t.Context(), filepath.Join(hub.Dir(), "installation", "kubectl-krake"),
		"--kubeconfig", hub.Kubeconfig(), "-n", namespace, "create", name, "-f", "-")
	create.Stdin = strings.NewReader(strings.Join(documents, "---\n"))
	text, err := create.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	t.Logf("%s: %d objects: %s", name, len(documents), text)
	found, err := hub.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: application.ClusterLabel})
	kit.Must(t, err)
	for _, cm := range found.Items {
		app := hub.App(namespace, cm.Name)
		app.Annotate(t, "deletion-policy", string(application.Delete)) // also of definitions, which other tests create
		apps = append(apps, app)
	}
	return apps
}

// isWell returns a complaint unless all objects are as in the manifest, and the Application is ready.
func isWell(t *testing.T, app kit.App) (complaint string) {
	t.Helper()
	status := app.Read(t).Status
	for _, condition := range []string{application.ReconciledCondition, application.ReadyCondition} {
		if !meta.IsStatusConditionTrue(status.Conditions, condition) {
			return fmt.Sprintf("%s: %s is not true: %+v", app, condition, status.Conditions)
		}
	}
	return ""
}
