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

// said is a condition of the package's tables, without its meaning.
type said struct {
	condition string
	status    metav1.ConditionStatus
	reason    string
}

// inTables returns all conditions of the tables.
func inTables() []said {
	var all []said
	for _, one := range status.Conditions() {
		all = append(all, said{one.Condition, one.Status, one.Reason})
	}
	return all
}

// heard holds the conditions that the loop has set in all tests of this package.
var heard sync.Map

// hear returns an error for a condition that is not in the tables.
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

// unheard returns the conditions of the tables that no test has set. The reference must list
// every condition, and only conditions that occur. The codec reports the lack of room, and has
// tests of its own.
func unheard() []said {
	return slices.DeleteFunc(inTables(), func(one said) bool {
		_, ok := heard.Load(one)
		return ok || one.condition == application.StatusTruncatedCondition
	})
}

// A run of selected tests sets only some conditions.
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
