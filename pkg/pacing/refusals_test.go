package pacing

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Split returns the message of the first refusal, wherever its field is in the order of fields.
func TestTheFirstRefusalIsTold(t *testing.T) {
	difference := func(name string) schema.Difference {
		return schema.Difference{Path: schema.Path{{Field: name, Index: -1}}, Want: "2", Have: "1"}
	}
	all := schema.Differences{difference("a"), difference("b"), difference("c")}
	for _, first := range []int{0, 1, 2} {
		var refusals Refusals
		refusals.Add(all[first:first+1], "first")
		for i := range all {
			if i != first {
				refusals.Add(all[i:i+1], "later")
			}
		}
		if open, refused, told := refusals.Split(all); len(open) > 0 || len(refused) != 3 || told != "first" {
			t.Errorf("%s was refused first: %q is told; %d are open, %d refused", all[first].Path, told, len(open), len(refused))
		}
	}
}
