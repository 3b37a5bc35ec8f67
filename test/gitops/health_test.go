package gitops

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// patchedCheck applies the patch in manifests/gitops to a ConfigMap of Argo CD, with the
// command of the documentation, and reads the check from there.
func patchedCheck(t *testing.T) luaCheck {
	t.Helper()
	hub.CreateNamespace(t, "argocd")
	_, err := hub.CoreV1().ConfigMaps("argocd").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-cm"}, Data: map[string]string{"url": "https://argocd.example.com"},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	hub.Kubectl(t, "patch", "configmap", "argocd-cm", "--namespace", "argocd",
		"--patch-file", filepath.Join("..", "..", "manifests", "gitops", "argocd-cm.yaml"))
	cm, err := hub.CoreV1().ConfigMaps("argocd").Get(t.Context(), "argocd-cm", metav1.GetOptions{})
	kit.Must(t, err)
	if cm.Data["url"] == "" {
		t.Error("the patch removes other settings")
	}
	return shippedLua(t, cm.Data)
}

// Argo CD and Flux see the health of Applications that run, are held, fail, are fought over
// or are being deleted.
func TestHealth(t *testing.T) {
	lua, cel := patchedCheck(t), celInFile(t)
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	change := `{"data": {"title": "Yesterday"}}`
	for _, c := range []struct {
		name     string
		manifest string
		options  []kit.Option
		// then is done once the object of the manifest song exists.
		then func(t *testing.T, app kit.App)
		want mapping
		says string
	}{
		{name: "runs", want: healthy, says: "Ready: all objects match"},
		{name: "fails", manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-song}, data: {"a b": c}}`,
			want: degraded, says: "Invalid: v1 ConfigMap"},
		{name: "held", options: []kit.Option{kit.Annotation("hold-until", soon)}, then: func(t *testing.T, app kit.App) {
			awaitSong(t, app)
			app.MustBe(t, application.StateRunning)
			hub.Change(t, kit.ConfigMaps, app.Namespace, app.Name+"-song", change)
		}, want: suspended, says: "Held: v1 ConfigMap"},
		{name: "fought", then: fight, want: degraded, says: "CompetingWriter: v1 ConfigMap"},
		{name: "leaves", then: func(t *testing.T, app kit.App) {
			awaitSong(t, app)
			app.MustBe(t, application.StateRunning)
			block := func(finalizers string) {
				hub.Change(t, kit.ConfigMaps, app.Namespace, app.Name+"-song", `{"metadata": {"finalizers": `+finalizers+`}}`)
			}
			block(`["example.com/wait"]`)
			t.Cleanup(func() { block("null"); app.MustGo(t) })
			app.Delete(t)
		}, want: progressing, says: "Pending deletion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.manifest == "" {
				c.manifest = song
			}
			namespace := hub.NewNamespace(t, "gitops")
			kit.EventuallyTrue(t, "there is no ServiceAccount", func() bool {
				return hub.Get(t, serviceAccounts, namespace, "default") != nil
			})
			app := hub.CreateApp(t, kit.Application(namespace, "web", c.manifest, c.options...))
			if c.then != nil {
				c.then(t, app)
			}
			kit.Eventually(t, func() string {
				return healthIs(t, lua, cel, hub.Get(t, kit.ConfigMaps, app.Namespace, app.Name), c.want, c.says)
			})
		})
	}
}

func awaitSong(t *testing.T, app kit.App) {
	t.Helper()
	kit.EventuallyTrue(t, "the object is not there", func() bool {
		return hub.Get(t, kit.ConfigMaps, app.Namespace, app.Name+"-song") != nil
	})
}

// contention changes an observed field again and again until the test ends.
func fight(t *testing.T, app kit.App) {
	awaitSong(t, app)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			_, err := hub.Dynamic.Resource(kit.ConfigMaps).Namespace(app.Namespace).Patch(ctx, app.Name+"-song", types.MergePatchType,
				fmt.Appendf(nil, `{"data": {"title": "Yesterday %d"}}`, i), metav1.PatchOptions{FieldManager: "rival"})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}
