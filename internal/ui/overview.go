package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (s *Server) overview(w http.ResponseWriter, _ *http.Request) {
	found := s.live.since(0)
	slices.Reverse(found.repairs) // the newest first
	s.show(w, "overview", "Applications", fmt.Sprintf("/events?since=%d", found.number), struct {
		Rows    []Row
		Repairs []Repair
	}{found.rows, found.repairs})
}

// rowID is unique, because no name contains a slash.
func rowID(name types.NamespacedName) string { return "row-" + name.String() }

// DriftsOfDay is the number of drifts in the last 24 hours.
func (r Row) DriftsOfDay() (sum int) {
	for _, count := range r.Hours {
		sum += count
	}
	return sum
}

// Bars is the path of a chart of the drifts in each hour, 16 high.
func (r Row) Bars() string {
	const height = 16
	most := max(slices.Max(r.Hours[:]), 1)
	var path strings.Builder
	for hour, count := range r.Hours {
		if count > 0 {
			high := max(height*count/most, 2)
			fmt.Fprintf(&path, "M%d %dh3v%dh-3z", hour*4, height-high, high)
		}
	}
	return path.String()
}
