package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
)

// Colours do not change the positions of columns.
func TestColoursKeepColumns(t *testing.T) {
	h := manyApps(t)
	e, _, _ := h.environment()
	items, _, err := e.list(t.Context(), "", metav1.ListOptions{})
	check.Must(t, err)
	printed := func(p painter) string {
		var b strings.Builder
		o := getOptions{scope: scope{all: true}, output: outputFlag{value: asWide}}
		rows := [][]cell{o.header()}
		for _, i := range items {
			rows = append(rows, o.row(overviewOf(i, heartbeats{}, noon), noon))
		}
		check.Must(t, newTable(&b, p).print(rows...))
		return b.String()
	}
	coloured, plainly := printed(painter{on: true}), printed(painter{})
	check.Equal(t, "without its colours", plainly, regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(coloured, ""))
	if !strings.Contains(coloured, string(green)+"RUNNING"+string(plain)) || strings.Contains(plainly, "\x1b") {
		t.Errorf("%q", coloured)
	}
}

// Control characters are also escaped in JSON, and decode to the original text.
func TestDocumentsAreVisible(t *testing.T) {
	const hostile = "\u009b2J\u202e\x1b[0m\U000e0041 <ok> é"
	var b strings.Builder
	check.Must(t, printDocument(&b, asJSON, map[string]any{"a": hostile}))
	var read map[string]string
	if err := json.Unmarshal([]byte(b.String()), &read); err != nil || read["a"] != hostile {
		t.Errorf("%v, %q", err, read["a"])
	}
	if strings.ContainsAny(b.String(), "\u009b\u202e\x1b\U000e0041") || !strings.Contains(b.String(), "<ok> é") {
		t.Errorf("%q", b.String())
	}
}
