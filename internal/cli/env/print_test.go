package env

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// Control characters are also escaped in JSON, and decode to the original text.
func TestDocumentsAreVisible(t *testing.T) {
	const hostile = "\u009b2J\u202e\x1b[0m\U000e0041 <ok> é"
	var b strings.Builder
	check.Must(t, PrintDocument(&b, AsJSON, map[string]any{"a": hostile}))
	var read map[string]string
	if err := json.Unmarshal([]byte(b.String()), &read); err != nil || read["a"] != hostile {
		t.Errorf("%v, %q", err, read["a"])
	}
	if strings.ContainsAny(b.String(), "\u009b\u202e\x1b\U000e0041") || !strings.Contains(b.String(), "<ok> é") {
		t.Errorf("%q", b.String())
	}
}
