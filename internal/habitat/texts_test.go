package habitat

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// FuzzManifest: for any text of a Habitat, webhook and agent decode the same text.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		"", "yes", "n", "~", "null", "0o14", "0x1F", "0b1", "1_000", "12:30:45", "1e3", ".inf", "2026-01-02", "=", "<<", "!!int 3", "&a", "*a",
		"a: b", "- a", "# a", " a", "a ", "a\n---\nb", "---\n", "--- # a", "...\n", "a\r\nb", "a\tb", "\n\n a", "a\n ", "|", ">-", "{", "'", "\"",
		"\x00", "\x07", "\x7f", "\u0085", "\u2028", "\ufeff", "\U0010ffff", "ключ", "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("no JSON")
		}
		h := habitat.Habitat{
			NamespacedName: types.NamespacedName{Namespace: "shop", Name: "greeter"}, CustomVersion: habitat.V1beta2,
			Spec: habitat.Spec{Image: "greeter:1", Env: []any{map[string]any{"name": "A", "value": text}, map[string]any{"name": text, "value": "b"}},
				Service: habitat.Service{Name: "greeter", Topology: habitat.Standalone, Group: text}},
		}
		cm, err := (&shared{cluster: application.LocalCluster, filesImage: text}).applicationOf(h)
		kit.Must(t, err)
		got, err := manifest.Decode([]byte(cm.Data[application.ManifestKey]))
		if err != nil {
			t.Fatalf("%q cannot be read: %v\n%s", text, err, cm.Data[application.ManifestKey])
		}
		if diff := cmp.Diff([]any{h.Workload(text)}, got); diff != "" {
			t.Errorf("%q became another one (-want +got):\n%s", text, diff)
		}
	})
}
