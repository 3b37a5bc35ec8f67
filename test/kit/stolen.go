package kit

import (
	"cmp"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Attempt is a request with a stolen identity, and whether the API server carries it out.
type Attempt struct {
	What string
	Try  func() error
	Can  bool
	// Refusal is the reason of the answer if it does not, Forbidden if empty. By is a part of its text.
	Refusal metav1.StatusReason
	By      string
}

// Attempts makes each attempt in a subtest, and compares the list with the table in a section of docs/stolen-token.md: each line
// of the table is an attempt.
func Attempts(t *testing.T, section string, attempts []Attempt) {
	t.Helper()
	_, text, _ := strings.Cut(page(t, "stolen-token"), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	attempt(t, attempts, text, "")
}

// Attacks is [Attempts] for the lines of docs/attacks.md that begin with this identity.
func Attacks(t *testing.T, who string, attempts []Attempt) {
	t.Helper()
	attempt(t, attempts, page(t, "attacks"), who+" | ")
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name + ".md")
	Must(t, err)
	return string(text)
}

// attempt makes the attempts, and compares them with the lines of a table that begin with a prefix.
func attempt(t *testing.T, attempts []Attempt, table, prefix string) {
	t.Helper()
	said := map[bool]string{true: "can", false: "cannot"}
	var lines []string
	for _, a := range attempts {
		lines = append(lines, a.What+": "+said[a.Can])
		t.Run(a.What, func(t *testing.T) {
			err := a.Try()
			isRefused := apierrors.ReasonForError(err) == cmp.Or(a.Refusal, metav1.StatusReasonForbidden) && strings.Contains(err.Error(), a.By)
			if a.Can && err != nil || !a.Can && !isRefused {
				t.Errorf("the answer is %v", err)
			}
		})
	}
	var told []string
	for line := range strings.SplitSeq(table, "\n") {
		line, found := strings.CutPrefix(strings.Trim(line, "| "), prefix)
		cells := strings.Split(line, " | ")
		if found && len(cells) == 2 && strings.HasPrefix(cells[1], "can") {
			verb, _, _ := strings.Cut(cells[1], ":")
			told = append(told, cells[0]+": "+verb)
		}
	}
	if !slices.Equal(lines, told) {
		t.Errorf("the page has\n%s\nand the test\n%s", strings.Join(told, "\n"), strings.Join(lines, "\n"))
	}
}

// Send returns an attempt that is one request, such as "GET /api/v1/namespaces". A patch is a JSON patch if it is a list, server-side
// apply if the request names a field manager and forces it, and a merge patch otherwise.
func Send(t *testing.T, client kubernetes.Interface, request, body string) func() error {
	t.Helper()
	verb, path, _ := strings.Cut(request, " ")
	kind := runtime.ContentTypeJSON
	switch {
	case verb != http.MethodPatch:
	case strings.HasPrefix(body, "["):
		kind = string(types.JSONPatchType)
	case strings.Contains(path, "force=true"):
		kind = string(types.ApplyPatchType)
	default:
		kind = string(types.MergePatchType)
	}
	return func() error {
		return client.CoreV1().RESTClient().Verb(verb).RequestURI(path).SetHeader("Content-Type", kind).Body([]byte(body)).Do(t.Context()).Error()
	}
}
