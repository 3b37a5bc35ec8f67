package manifests

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/test/check"
)

// The default overlay equals the base, except that it also runs images that are loaded into
// the nodes and are in no registry.
func TestDefault(t *testing.T) {
	objects := make([]runtime.Object, 0, 50)
	for _, object := range installation(t, "overlays/default").objects {
		object = object.DeepCopyObject()
		if deployment, ok := object.(*appsv1.Deployment); ok {
			for i := range deployment.Spec.Template.Spec.Containers {
				container := &deployment.Spec.Template.Spec.Containers[i]
				if container.ImagePullPolicy != corev1.PullIfNotPresent {
					t.Errorf("%s: the image is pulled %q", deployment.Name, container.ImagePullPolicy)
				}
				container.ImagePullPolicy = ""
			}
		}
		objects = append(objects, object)
	}
	check.Equal(t, "overlays/default beside base", installation(t, "base").objects, objects)
}
