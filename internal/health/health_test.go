package health_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

type object = map[string]any

func decode(t testing.TB, yaml string) object {
	t.Helper()
	documents, err := manifest.Decode([]byte(yaml))
	check.Must(t, err)
	return documents[0].(object)
}

// example is a live object with its health.
type example struct {
	why  string
	live object
	want health.Health
}

// examples reads testdata/health.yaml.
func examples(t testing.TB) (all []example) {
	t.Helper()
	text, err := os.ReadFile("testdata/health.yaml")
	check.Must(t, err)
	documents, err := manifest.Decode(text)
	check.Must(t, err)
	for _, document := range documents {
		fields := document.(object)
		one := example{why: fields["why"].(string), live: fields["live"].(object)}
		want, err := json.Marshal(fields["want"])
		check.Must(t, err)
		check.Must(t, json.Unmarshal(want, &one.want))
		all = append(all, one)
	}
	return all
}

func TestOf(t *testing.T) {
	for _, c := range examples(t) {
		t.Run(c.why, func(t *testing.T) {
			before := runtime.DeepCopyJSON(c.live)
			check.Equal(t, "health", c.want, health.Of(c.live))
			check.Equal(t, "the object afterwards", before, c.live)
		})
	}
}

// A Pod may have hundreds of containers, and a character several bytes.
func TestMessagesAreBounded(t *testing.T) {
	for _, name := range []string{"web", "wäb", "w世b"} {
		statuses := make([]any, 500)
		for i := range statuses {
			statuses[i] = object{"name": name, "state": object{"waiting": object{"reason": "CrashLoopBackOff"}}}
		}
		live := object{"apiVersion": "v1", "kind": "Pod", "status": object{"phase": "Running", "containerStatuses": statuses}}
		got := health.Of(live).Message
		if len(got) > health.MaxMessage || len(got) < health.MaxMessage-3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
