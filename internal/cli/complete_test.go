package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/test/check"
)

// Names of Applications are completed, not those of other ConfigMaps.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		typed []string
		want  string
	}{
		{[]string{"get", ""}, "edited fresh full future held leaving nobody paused raw silent watching web :4"},
		{[]string{"get", "w"}, "watching web :4"},
		{[]string{"get", "web", "w"}, "watching :4"},
		{[]string{"describe", "se"}, ":4"},
		{[]string{"history", "wa"}, "watching :4"},
		{[]string{"history", "web", ""}, ":4"},
		{[]string{"get", "-o", ""}, "table wide json yaml :4"},
	} {
		e, out, _ := manyApps(t).environment()
		check.Must(t, complete(t, e, c.typed...))
		check.Equal(t, strings.Join(c.typed, " "), c.want, strings.Join(strings.Fields(out.String()), " "))
	}
}

func complete(t *testing.T, e *environment, typed ...string) error {
	t.Helper()
	root := &cobra.Command{Use: "krake"}
	root.AddCommand(newGetCommand(e), newDescribeCommand(e), newHistoryCommand(e))
	root.SetOut(e.Out)
	root.SetErr(e.ErrOut)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, typed...))
	return root.ExecuteContext(t.Context())
}

// Without the right to list, completion returns nothing: an error would not help there.
func TestCompleteWithoutRights(t *testing.T) {
	h := manyApps(t)
	h.refuse("configmaps", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not you")))
	e, out, _ := h.environment()
	if err := complete(t, e, "get", ""); err != nil || out.String() != ":1\n" {
		t.Errorf("%v, %q", err, out)
	}
}
