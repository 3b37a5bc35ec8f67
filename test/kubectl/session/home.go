package session

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// Namespace returns the namespace of a session, from the name of its folder, which is
// that of its script.
func Namespace(session *testscript.Env) string {
	return strings.TrimPrefix(filepath.Base(session.WorkDir), "script-")
}

// Home sets up the home of a session: a kubeconfig in the namespace of the session,
// kubectl, and the programs of some folders. The administrator impersonates the user,
// or acts without one if the name is empty.
func Home(session *testscript.Env, in *cluster.Cluster, user string, folders ...string) error {
	config, err := clientcmd.LoadFromFile(in.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	for _, one := range config.AuthInfos {
		one.Impersonate = user
	}
	for _, one := range config.Contexts {
		one.Namespace = Namespace(session)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	home := filepath.Join(session.WorkDir, ".home")
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	session.Setenv("HOME", home)
	session.Setenv("KUBECONFIG", kubeconfig)
	session.Setenv("NAMESPACE", Namespace(session))
	// Sessions share the discovery of the server.
	session.Setenv("KUBECACHEDIR", filepath.Join(in.Dir(), "kubectl-cache"))
	kubectl, err := exec.LookPath(in.Kubectl())
	if err != nil {
		return fmt.Errorf("find kubectl: %w", err)
	}
	paths := slices.Concat([]string{filepath.Dir(kubectl)}, folders, []string{session.Getenv("PATH")})
	session.Setenv("PATH", strings.Join(paths, string(os.PathListSeparator)))
	return nil
}
