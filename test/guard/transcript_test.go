package guard

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

// What people see who change what an Application manages, in each mode of the guard.
func TestTranscript(t *testing.T) {
	t.Parallel()
	play(t, "guard.txtar", "edith")
}

// The commands of docs/guard.md remove the guard, and with its overlay it comes back.
func TestRemoval(t *testing.T) {
	kit.Long(t, "the agents wait before they look for the Secret again")
	t.Run("the commands", func(t *testing.T) { play(t, "removal.txtar", "") })
	kit.Must(t, installed.Apply(t.Context()))
	settle(t, newWeb(t))
}

// play runs a script as a user, or as the administrator.
func play(t *testing.T, file, user string) {
	t.Helper()
	plugin := filepath.Join(hub.Dir(), "installation")
	completion, err := filepath.Abs("../../cmd/kubectl-krake")
	kit.Must(t, err)
	session.Run(t, []string{file}, *update, func(script *testscript.Env) error {
		name := session.Namespace(script)
		ctx := context.Background() // the script has none
		for _, arguments := range [][]string{
			{"create", "namespace", name},
			{"create", "rolebinding", "edith", "--clusterrole=edit", "--user=edith", "--namespace=" + name},
		} {
			if text, err := kit.TryKubectl(ctx, hub.Cluster, "", arguments...); err != nil {
				script.T().Fatal(text)
			}
		}
		return session.Home(script, hub.Cluster, user, plugin, completion)
	}, nil)
}
