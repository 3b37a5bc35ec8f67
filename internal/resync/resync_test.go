package resync

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/check"
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
			check.Equal(t, "it stands", c.want, c.first.Stands(c.listed, c.known))
		})
	}
}

// An older version than before is possible only after a restore. A deletion, a creation, and versions that
// cannot be ordered are none.
func TestAnOlderVersionThanBefore(t *testing.T) {
	var absent Version
	is := func(version string) Version { return Version{"a", version} }
	for _, c := range []struct {
		name          string
		listed, known Version
		restored      bool
	}{
		{"older", is("4"), is("5"), true},
		{"older, with fewer digits", is("9"), is("10"), true},
		{"older, of another object", Version{"b", "4"}, is("5"), true},
		{"newer", is("5"), is("4"), false},
		{"newer, with more digits", is("10"), is("9"), false},
		{"created", is("4"), absent, false},
		{"deleted", absent, is("5"), false},
		{"without order", is("x"), is("5"), false},
	} {
		differences := Compare(versionsOf(c.listed), versionsOf(c.known))
		check.Equal(t, c.name, c.restored, errors.Is(differences.CheckHistory(), ErrRestored))
	}
}

func versionsOf(version Version) Versions {
	if version == (Version{}) {
		return Versions{}
	}
	return Versions{types.NamespacedName{Name: "web"}: version}
}
