package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// The status keeps a hold that was taken off. The bar of one that is over stays.
func TestBarsShowHoldsInForce(t *testing.T) {
	held := itemOf(heldApp(t))
	id := idOf("Deployment", "web")
	for _, c := range []struct {
		why   string
		holds map[manifest.ID]bool
		until time.Time
		want  int
	}{
		{"it is held", map[manifest.ID]bool{id: true}, noon.Add(time.Hour), 1},
		{"the object could not be read", nil, noon.Add(time.Hour), 1},
		{"its annotation was taken off", map[manifest.ID]bool{id: false}, noon.Add(time.Hour), 0},
		{"the hold is over", nil, noon, 1},
	} {
		held.holds, held.app.Status.Objects[0].Hold.Until = c.holds, metav1.NewTime(c.until)
		check.Equal(t, c.why, c.want, len(description{item: held, now: noon}.bars()))
	}
}
