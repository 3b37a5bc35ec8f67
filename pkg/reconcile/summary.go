package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Summary is the loop's knowledge of a live object beside its observed fields.
type Summary struct {
	health.Health

	// Hold is the object's annotation, "" if it has none.
	Hold string
	// OwnerUID is the UID of the Application that the object names as its owner.
	OwnerUID types.UID
}

// Summarise returns the [Summary] of a live object, for observer.Options.
func Summarise(live map[string]any) any {
	return Summary{
		Health: health.Of(live), Hold: holdOf(live), OwnerUID: types.UID(annotationOf(live, application.OwnerUIDAnnotation)),
	}
}

func holdOf(live map[string]any) string { return annotationOf(live, application.HoldUntilAnnotation) }

func annotationOf(live map[string]any, name string) string {
	metadata, _ := live["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, _ := annotations[name].(string)
	return value
}

func uidOf(live map[string]any) types.UID {
	return (&unstructured.Unstructured{Object: live}).GetUID()
}

func versionOf(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}
