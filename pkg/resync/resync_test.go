package resync

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A difference counts only if the watch had the time to report it.
func TestADifferenceStandsUntilItIsHeardOf(t *testing.T) {
	var absent Version
	is := func(uid, version string) Version { return Version{types.UID(uid), version} }
	cases := []struct {
		name          string
		first         Difference
		listed, known Version
		want          bool
	}{
		{"a change of which it has not heard", Difference{is("a", "5"), is("a", "4")}, is("a", "5"), is("a", "4"), true},
		{"it has heard of an earlier one meanwhile", Difference{is("a", "9"), is("a", "4")}, is("a", "9"), is("a", "6"), true},
		{"it has heard of it", Difference{is("a", "5"), is("a", "4")}, is("a", "5"), is("a", "5"), false},
		{"it has heard of it, and another is on its way", Difference{is("a", "5"), is("a", "4")}, is("a", "7"), is("a", "5"), false},
		{"it knew more than the list", Difference{is("a", "5"), is("a", "6")}, is("a", "6"), is("a", "6"), false},
		{"another object of that name", Difference{is("b", "8"), is("a", "5")}, is("b", "8"), is("a", "5"), true},
		{"a creation of which it has not heard", Difference{is("a", "5"), absent}, is("a", "5"), absent, true},
		{"a creation, and the deletion came before the second look", Difference{is("a", "5"), absent}, absent, absent, false},
		{"created again, which is on its way", Difference{is("a", "5"), absent}, is("b", "8"), absent, false},
		{"a deletion of which it has not heard", Difference{absent, is("a", "5")}, absent, is("a", "5"), true},
		{"a deletion of which it has heard", Difference{absent, is("a", "5")}, absent, absent, false},
		{"it was created after the first list", Difference{absent, is("a", "5")}, is("a", "5"), is("a", "5"), false},
		{"created again, and known", Difference{absent, is("a", "5")}, absent, is("b", "8"), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.first.Stands(c.listed, c.known); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
