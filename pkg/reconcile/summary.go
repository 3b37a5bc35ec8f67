package reconcile

import (
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/health"
)

// Summary is what is to be known of a live object beyond its observed fields.
type Summary struct {
	health.Health

	// Hold is the object's annotation, "" if it has none.
	Hold string
}

// Summarise gives the [Summary] of a live object, for observer.Options.
func Summarise(live map[string]any) any {
	return Summary{Health: health.Of(live), Hold: holdOf(live)}
}

func holdOf(live map[string]any) string {
	metadata, _ := live["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	hold, _ := annotations[application.HoldUntilAnnotation].(string)
	return hold
}
