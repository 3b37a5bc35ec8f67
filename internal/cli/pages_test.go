package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
)

// The ConfigMaps need more than one page.
func TestListReadsAllPages(t *testing.T) {
	h := newHub(t)
	for i := range 2*page + 1 {
		h.put(created("app-" + strings.Repeat("x", i)))
	}
	e, _, _ := h.environment()
	items, _, err := list(t.Context(), e, "demo", metav1.ListOptions{})
	check.Must(t, err)
	check.Equal(t, "Applications", 2*page+1, len(items))
}
