package pacing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// changed returns a difference at a path that an API server could have named.
func changed(path string) schema.Difference {
	return schema.Difference{Path: schema.MustParsePath(path), Kind: schema.Changed, Want: "2", Have: "1"}
}

func changes(paths ...string) (all schema.Differences) {
	for _, path := range paths {
		all = append(all, changed(path))
	}
	return all
}

func pathsOf(differences schema.Differences) (paths []string) {
	for _, one := range differences {
		paths = append(paths, one.Path.String())
	}
	return paths
}

// answers returns refusals with one message.
func answers(message string, differences ...schema.Difference) (refused []Refusal) {
	for _, one := range differences {
		refused = append(refused, Refusal{Change: one, Reason: "Invalid", Message: message})
	}
	return refused
}

// Split returns the message of the first refusal, wherever its field is in the order of fields.
func TestTheFirstRefusalIsTold(t *testing.T) {
	all := changes("a", "b", "c")
	for _, first := range []int{0, 1, 2} {
		var refusals *Refusals
		refusals = refusals.Add(answers("first", all[first]), "", noon)
		for i := range all {
			if i != first {
				refusals = refusals.Add(answers("later", all[i]), "", noon)
			}
		}
		open, refused, told := refusals.Split(all)
		if len(open) > 0 || len(refused) != 3 || told.Message != "first" || told.Reason != "Invalid" {
			t.Errorf("%s was refused first: %+v is told; %d are open, %d refused", all[first].Path, told, len(open), len(refused))
		}
	}
}

// Several refusals that one evaluation found are told together, each text once.
func TestRefusalsOfOneAnswerAreToldTogether(t *testing.T) {
	all := changes("a", "b", "c")
	var refusals *Refusals
	refusals = refusals.Add(slices.Concat(answers("one", all[0], all[1]), answers("two", all[2])), "", noon)
	_, _, told := refusals.Split(all)
	check.Equal(t, "message", "one; two", told.Message)
}

// A refused change is due after a pause that grows up to five minutes, and never given up.
func TestARefusalAges(t *testing.T) {
	all := changes("a")
	var refusals *Refusals
	var pauses []int
	for now, asked := noon, noon; len(pauses) < 10; now = now.Add(time.Second) {
		refusals.Renew("same", now)
		if open, _, _ := refusals.Split(all); len(open) == 0 {
			continue
		}
		if !now.Equal(noon) {
			pauses = append(pauses, int(now.Sub(asked)/time.Second))
		}
		refusals = refusals.Add(answers("no", all...), "same", now)
		asked = now
	}
	check.Equal(t, "pauses in seconds", []int{5, 10, 20, 40, 80, 160, 300, 300, 300, 300}, pauses)
}

// Other circumstances make a refused change due at once. If they change again and again, at most
// one request a minute follows in the end.
func TestOtherCircumstancesEndThePause(t *testing.T) {
	all := changes("a")
	var refusals *Refusals
	refusals = refusals.Add(answers("no", all...), "0", noon)
	asked := 0
	for second := range 600 {
		now := noon.Add(time.Duration(second) * time.Second)
		refusals.Renew(now.String(), now)
		if open, _, _ := refusals.Split(all); len(open) > 0 {
			asked++
			refusals = refusals.Add(answers("no", all...), now.String(), now)
		}
		if second == 0 && asked != 1 {
			t.Error("it was not asked at once")
		}
	}
	if asked < 10 || asked > 25 {
		t.Errorf("asked %d times in ten minutes", asked)
	}
}

// What the loop itself writes is no reason to ask again.
func TestOwnWritesDoNotEndThePause(t *testing.T) {
	all := changes("a")
	var refusals *Refusals
	refusals = refusals.Add(answers("no", all...), "before", noon)
	refusals.Follow("after")
	refusals.Renew("after", noon.Add(time.Second))
	open, _, _ := refusals.Split(all)
	check.Empty(t, "due", open)
	check.Equal(t, "due", noon.Add(5*time.Second), refusals.Until())
}

// A refused creation is due again, too, and so is another revision.
func TestARefusedWholeAges(t *testing.T) {
	var refusals *Refusals
	refusals = refusals.AddWhole("1", "taken", "", noon)
	for _, c := range []struct {
		revision string
		after    time.Duration
		refused  bool
	}{{"1", 0, true}, {"2", 0, false}, {"1", 4 * time.Second, true}, {"1", 5 * time.Second, false}} {
		refusals.Renew("", noon.Add(c.after))
		_, refused := refusals.OfWhole(c.revision)
		check.Equal(t, fmt.Sprintf("revision %s after %s is refused", c.revision, c.after), c.refused, refused)
	}
}

// The refused differences are at the named field or above it, or the only one below.
func TestNamed(t *testing.T) {
	all := changes("spec.strategy.type", "spec.template.spec.containers[0].image", `data["a.b"]`, "spec.ports", "spec.template.spec.containers[0].env[1].value")
	for _, c := range []struct{ field, want string }{
		{"spec.strategy.type", "spec.strategy.type"},
		{"spec.strategy", "spec.strategy.type"},
		{"spec.strategy.rollingUpdate", ""},
		{"spec.ports[0].nodePort", "spec.ports"},
		{"spec.port", ""},
		{"data[a.b]", `data["a.b"]`},
		{"data", `data["a.b"]`},
		{"spec.template.spec.containers[0]", ""}, // which of two?
		{"spec", ""},
		{"", ""},
	} {
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		check.Equal(t, "named by "+c.field, want, pathsOf(Named(all, []string{c.field})))
	}
}
