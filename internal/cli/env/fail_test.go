package env

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Each error is on a line of its own with its remedy, even if the API server that reports it
// names none.
func TestFail(t *testing.T) {
	maps := schema.GroupResource{Resource: "configmaps"}
	refused := &url.Error{Op: "Get", URL: "https://hub", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{nil, 0, ""},
		{ErrDifferent, 1, ""},
		{errors.New("x: mend it"), 2, "error: x: mend it\n"},
		{errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c"))), 2, "error: a\nerror: b\nerror: c\n"},
		{errors.Join(ErrDifferent, errors.New("b")), 1, ""},
		{fmt.Errorf("read x: %w", apierrors.NewForbidden(maps, "x", errors.New("not you"))), 2, `error: read x: configmaps "x" is forbidden: not you: kubectl auth can-i --list shows`},
		{apierrors.NewUnauthorized("who?"), 2, "error: who?: log in again, or name another user by --user or --context\n"},
		{fmt.Errorf("list: %w", refused), 2, "error: list: Get \"https://hub\": dial: connection refused: no API server answers there: check the --context"},
	} {
		var out bytes.Buffer
		if status := Fail(c.err, &out); status != c.status || !strings.HasPrefix(out.String(), c.says) || (c.says == "") != (out.Len() == 0) {
			t.Errorf("%v: %d: %s, want %d: %s", c.err, status, out.String(), c.status, c.says)
		}
	}
}
