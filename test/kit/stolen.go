package kit

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Attempt is a request with a stolen identity, and whether the API server carries it out.
type Attempt struct {
	What string
	Try  func() error
	Can  bool
	// Refusal is the reason of the answer if it does not, Forbidden if empty.
	Refusal metav1.StatusReason
}

// Attempts makes each attempt in a subtest, and compares the list with the table in a section of docs/stolen-token.md: each line
// of the table is an attempt.
func Attempts(t *testing.T, section string, attempts []Attempt) {
	t.Helper()
	said := map[bool]string{true: "can", false: "cannot"}
	var lines []string
	for _, a := range attempts {
		lines = append(lines, a.What+": "+said[a.Can])
		t.Run(a.What, func(t *testing.T) {
			err := a.Try()
			isRefused := apierrors.ReasonForError(err) == cmp.Or(a.Refusal, metav1.StatusReasonForbidden)
			if a.Can && err != nil || !a.Can && !isRefused {
				t.Errorf("the answer is %v", err)
			}
		})
	}
	page, err := os.ReadFile("../../docs/stolen-token.md")
	Must(t, err)
	_, text, _ := strings.Cut(string(page), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var told []string
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) == 2 && strings.HasPrefix(cells[1], "can") {
			verb, _, _ := strings.Cut(cells[1], ":")
			told = append(told, cells[0]+": "+verb)
		}
	}
	if !slices.Equal(lines, told) {
		t.Errorf("the page has\n%s\nand the test\n%s", strings.Join(told, "\n"), strings.Join(lines, "\n"))
	}
}
