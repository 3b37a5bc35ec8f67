package observer

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The figures are per kind. They count the objects of all owners, and the bytes of a whole
// object while it differs.
func TestStats(t *testing.T) {
	f, _ := started(t)
	list, err := f.client.Resource(configMaps).List(t.Context(), metav1.ListOptions{LabelSelector: label})
	kit.Must(t, err)
	f.observe(t, other, f.service("absent"))
	stats := f.Stats()
	bytes := stats[0].Bytes
	stats[0].Bytes = 0
	want := []Stat{{Resource: configMaps, Objects: len(list.Items)}, {Resource: services, Objects: stats[1].Objects, Bytes: stats[1].Bytes}}
	check.Equal(t, "held", want, stats)
	if bytes < recordBytes*int64(len(list.Items)) {
		t.Errorf("%d bytes of %d objects are too few", bytes, len(list.Items))
	}

	big := strings.Repeat("x", 10_000)
	f.change(t, "web", `{"data": {"a": "2", "c": "`+big+`"}}`)
	f.flush(t)
	if got := f.Stats()[0].Bytes; got < bytes+10_000 {
		t.Errorf("%d bytes with a whole object, want 10000 more than %d", got, bytes)
	}
	f.change(t, "web", `{"data": {"a": "1"}}`)
	f.flush(t)
	if got := f.Stats()[0].Bytes; got > bytes+5_000 {
		t.Errorf("%d bytes without the whole object, want about %d", got, bytes)
	}
}
