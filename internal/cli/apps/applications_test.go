package apps

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// The ConfigMaps need more than one page.
func TestListReadsAllPages(t *testing.T) {
	h := clitest.NewHub(t)
	for i := range 2*page + 1 {
		h.Put(clitest.Created("app-" + strings.Repeat("x", i)))
	}
	e, _, _ := h.Environment()
	items, _, err := List(t.Context(), e, "demo", metav1.ListOptions{})
	check.Must(t, err)
	check.Equal(t, "Applications", 2*page+1, len(items))
}
