package restore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// servers are the processes of a control plane that depend on etcd, in the order of their starts.
var servers = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// snapshot copies the data of etcd, and returns the folder with the copy.
func snapshot(t *testing.T, plane *kit.Plane) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "etcd")
	restart(t, plane, func(data string) error { return os.CopyFS(copied, os.DirFS(data)) })
	return copied
}

// restore replaces the data of etcd by a copy. As after a real restore, the control plane starts anew, and
// its clients go on.
func restore(t *testing.T, plane *kit.Plane, copied string) {
	t.Helper()
	restart(t, plane, func(data string) error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(copied)), os.Chmod(data, 0o700))
	})
}

// restart stops the control plane, calls do with the folder of etcd's data, and starts it again.
func restart(t *testing.T, plane *kit.Plane, do func(data string) error) {
	t.Helper()
	for _, name := range slices.Backward(servers) {
		kit.Must(t, plane.Newest(name).Kill())
	}
	kit.Must(t, do(filepath.Join(plane.Dir(), "etcd")))
	for _, name := range servers {
		_, err := plane.Again(plane.Newest(name), nil)
		kit.Must(t, err)
		if name == "kube-apiserver" {
			kit.EventuallyNil(t, func() error { // the controller manager ends without it
				return kit.ErrorOf(plane.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{}))
			})
		}
	}
}

// advance makes the versions of the API server grow, so that clients know newer ones than the snapshot.
func advance(t *testing.T, plane *kit.Plane, namespace string) {
	t.Helper()
	for i := range 200 {
		plane.Change(t, kit.ConfigMaps, namespace, "unrelated", fmt.Sprintf(`{"data":{"n":"%d"}}`, i))
	}
}
