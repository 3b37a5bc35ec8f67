package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A missing element replaces the most similar element that the manifest does not ask for, and
// no other.
func TestDisplace(t *testing.T) {
	for _, test := range []struct {
		why, desired, live, want string
		cut                      []int
	}{
		{"another key, and all the rest the same", "[{k: 80}]", "[{k: 8080}]", "[{k: 80}]", []int{0}},
		{"the one that is most alike, wherever it is", "[{k: 80, name: http, to: 1}]", "[{k: 9090, name: metrics, to: 1}, {k: 8080, name: http, to: 1}]",
			"[{k: 9090, name: metrics, to: 1}, {k: 80, name: http, to: 1}]", []int{1}},
		{"of several that are as much alike, the first one", "[{k: 80}]", "[{k: 1}, {k: 2}]", "[{k: 2}, {k: 80}]", []int{0}},
		{"each its own", "[{k: 1, a: x}, {k: 2, a: y}]", "[{k: 3, a: y}, {k: 4, a: x}, {k: 5}]", "[{k: 5}, {k: 1, a: x}, {k: 2, a: y}]", []int{0, 1}},
		{"each another one, if they are like the same", "[{k: 1, a: x}, {k: 2, a: x}]", "[{k: 3, a: x}, {k: 4}]", "[{k: 1, a: x}, {k: 2, a: x}]", []int{0, 1}},
		{"what is desired is nobody's place", "[{k: 1, a: x}, {k: 2, a: x}]", "[{k: 1, a: x}, {k: 3}]", "[{k: 1, a: x}, {k: 2, a: x}]", []int{1}},
		{"where there is nothing else, nothing goes", "[{k: 1, a: x}, {k: 2, a: x}]", "[]", "[{k: 1, a: x}, {k: 2, a: x}]", nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			desired, live := complete(decode(t, "spec: {list: "+test.desired+"}")), complete(decode(t, "spec: {list: "+test.live+"}"))
			s := parse(t, complete(decode(t, "spec: {list: ["+
				strings.Repeat("{a: null, name: null, to: null}, ", strings.Count(test.desired, "{"))+
				fmt.Sprintf("{observer_schema_list_min_length: %d, observer_schema_list_max_length: 0, observer_schema_list_key: k}]}", strings.Count(test.desired, "{")))))
			found := s.Displace(desired, live)
			if len(found) != 1 || !cmp.Equal(test.cut, found[0].Cut) || found[0].Displaces != (test.cut != nil) {
				t.Fatalf("found %v", found)
			}
			same(t, complete(decode(t, "spec: {list: "+test.want+"}")), patched(t, live, found.Patch()))
			if before := s.Compare(desired, live); len(before) != 1 || before[0].Displaces {
				t.Errorf("Compare finds %v", before)
			}
		})
	}
}
