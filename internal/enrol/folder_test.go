package enrol

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/check"
)

func written(t *testing.T, path string, options Options, token string) {
	t.Helper()
	f, err := openFolder(path, options.Cluster)
	check.Must(t, err)
	check.Must(t, f.write(options, address{server: "https://hub:16443", uid: "uid-of-the-hub"}, token))
}

// Only the owner may read the files, even if they were readable before. The token is in one
// file only.
func TestNobodyElseReadsTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "east")
	written(t, path, valid(t), "first-token")
	check.Must(t, os.Chmod(filepath.Join(path, "agent", "token"), 0o644))
	written(t, path, valid(t), "second-token")
	files, folder := 0, os.DirFS(path)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", name, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		files++
		text, err := fs.ReadFile(folder, name)
		check.Equal(t, name+" has the token", name == "agent/token", strings.Contains(string(text), "second-token"))
		if strings.Contains(string(text), "cluster-name") {
			t.Errorf("%s is of no cluster", name)
		}
		return err
	})
	if err != nil || files < 15 {
		t.Errorf("%d files: %v", files, err)
	}
	if text, err := os.ReadFile(filepath.Join(path, "agent", "token")); err != nil || string(text) != "second-token" {
		t.Errorf("token %q, %v", text, err)
	}
}

// A folder with other content is not written.
func TestOpenFolder(t *testing.T) {
	empty, other, foreign, file := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	written(t, other, valid(t), "x")
	for _, name := range []string{filepath.Join(foreign, "kustomization.yaml"), file} {
		check.Must(t, os.WriteFile(name, []byte("kind: Kustomization\n"), 0o600))
	}
	for _, c := range []struct{ why, path, cluster, err string }{
		{"it is made", filepath.Join(empty, "new"), "east", ""},
		{"nothing is in it", empty, "east", ""},
		{"it is the cluster's", other, "east", ""},
		{"it is another cluster's", other, "east2", "not of an enrolment of east2"},
		{"it is another cluster's, whose name is longer", other, "eas", "not of an enrolment of eas"},
		{"somebody's kustomization", foreign, "east", "not of an enrolment"},
		{"a file", file, "east", "--out: "},
	} {
		_, err := openFolder(c.path, c.cluster)
		check.Fails(t, c.why, err, c.err)
	}
}

// document is a part of the file kustomization.yaml.
type document struct {
	Resources, Components []string
	SecretGenerator       []struct{ Name string }
	Patches               []struct {
		Target struct{ Kind string }
		Patch  string
	}
}

func kustomizationIn(t *testing.T, folder string) (d document) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	check.Must(t, err)
	check.Must(t, yaml.Unmarshal(text, &d))
	return d
}

// The kustomizations contain the options.
func TestKustomizations(t *testing.T) {
	path := t.TempDir()
	options := valid(t)
	options.HubNamespaces, options.NamespaceMap = []string{"b", "a"}, []string{"a=x"}
	options.Image, options.RequireServiceAccount, options.Reach.Scope = "registry.example.org:5000/krake@sha256:0", true, "cluster"
	written(t, path, options, "x")
	check.Equal(t, "kustomization.yaml", document{
		Resources:  []string{"manifests/overlays/spoke/shared", "agent"},
		Components: []string{"manifests/components/strict/target", "manifests/components/cluster-scope/target"},
	}, kustomizationIn(t, path))
	agent := kustomizationIn(t, filepath.Join(path, "agent"))
	if len(agent.Patches) != 2 || len(agent.SecretGenerator) != 1 || agent.SecretGenerator[0].Name != "krake-hub-east" {
		t.Fatalf("%+v", agent)
	}
	for _, part := range []string{`"--hub-namespaces=a,b"`, `"--namespace-map=a=x"`, `"--hub-uid=uid-of-the-hub"`, `"registry.example.org:5000/krake@sha256:0"`} {
		if !strings.Contains(agent.Patches[0].Patch, part) {
			t.Errorf("%s does not have %s", agent.Patches[0].Patch, part)
		}
	}
	if agent.Patches[1].Target.Kind != "NetworkPolicy" || !strings.Contains(agent.Patches[1].Patch, `{"port":16443}`) {
		t.Errorf("the hub is not reached: %+v", agent.Patches[1])
	}
}

// Hooks have a part that all agents of a cluster share, and one that belongs to the agent. The
// guard belongs to the agent.
func TestKustomizationsOfHooksAndGuard(t *testing.T) {
	const (
		strict, hooks, strictHooks = "manifests/components/strict/target", "manifests/components/hooks/target", "manifests/components/hooks/strict"
		hooksOfAgent, guardOfAgent = "../manifests/components/hooks/spoke", "../manifests/components/guard/spoke"
	)
	for _, c := range []struct {
		why           string
		change        func(*Options)
		shared, agent []string
	}{
		{"neither", func(*Options) {}, nil, nil},
		{"strict hooks", func(o *Options) { o.Hooks, o.RequireServiceAccount = true, true }, []string{strict, hooks, strictHooks}, []string{hooksOfAgent}},
		{"a guard", func(o *Options) { o.Guard = true }, nil, []string{guardOfAgent}},
		{"both", func(o *Options) { o.Hooks, o.Guard = true, true }, []string{hooks}, []string{hooksOfAgent, guardOfAgent}},
	} {
		t.Run(c.why, func(t *testing.T) {
			path, options := t.TempDir(), valid(t)
			c.change(&options)
			written(t, path, options, "x")
			for folder, want := range map[string][]string{"": c.shared, "agent": c.agent} {
				folder = filepath.Join(path, folder)
				check.Equal(t, "components of "+folder, want, kustomizationIn(t, folder).Components)
			}
			checkPorts(t, path)
		})
	}
}

// checkPorts fails unless exactly the agent's own NetworkPolicy allows its connections to the hub.
func checkPorts(t *testing.T, folder string) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	check.Must(t, err)
	var open []string
	for _, object := range built.Resources() {
		if object.GetKind() == "NetworkPolicy" && strings.Contains(object.MustString(), "port: 16443\n") {
			open = append(open, object.GetName())
		}
	}
	check.Equal(t, "policies with the port of the hub", []string{"krake-agent-east"}, open)
}
