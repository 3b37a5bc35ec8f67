package reconcile_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// said is a condition as the tables of the package have it, without what it means.
type said struct {
	condition string
	status    metav1.ConditionStatus
	reason    string
}

// inTables are all that may be said.
func inTables() []said {
	var all []said
	for _, one := range status.Conditions() {
		all = append(all, said{one.Condition, one.Status, one.Reason})
	}
	return all
}

// heard is what the loop has said in all the tests of this package.
var heard sync.Map

// hear fails for what is not in the tables.
func hear(conditions []metav1.Condition) error {
	for _, condition := range conditions {
		one := said{condition.Type, condition.Status, condition.Reason}
		if !slices.Contains(inTables(), one) {
			return fmt.Errorf("condition %s is %s for the reason %q: status.Conditions does not tell of it", one.condition, one.status, one.reason)
		}
		heard.Store(one, true)
	}
	return nil
}

// unheard are those of the tables that nobody has said. None of them can be left out of
// the reference, and none that cannot be said belongs there. That there is no room is
// said by the codec, which has tests of its own.
func unheard() []said {
	return slices.DeleteFunc(inTables(), func(one said) bool {
		_, ok := heard.Load(one)
		return ok || one.condition == application.TooLargeCondition
	})
}

// A run of some tests hears some of them.
func isWholeRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.fuzz", "test.list"} {
		if chosen := flag.Lookup(name); chosen != nil && chosen.Value.String() != "" {
			return false
		}
	}
	return true
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if missing := unheard(); code == 0 && isWholeRun() && len(missing) > 0 {
		for _, one := range missing {
			fmt.Fprintf(os.Stderr, "condition %s is %s for the reason %s: status.Conditions tells of it, and in no test it was so\n", one.condition, one.status, one.reason)
		}
		code = 1
	}
	os.Exit(code)
}
