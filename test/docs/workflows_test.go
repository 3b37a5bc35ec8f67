package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	kit.Must(t, err)
	return text
}

// matches returns the texts that the group of a pattern matches.
func matches(text []byte, pattern string) []string {
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

// workflow has the checked parts of a workflow.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	Permissions map[string]string `json:"permissions"`
	RunsOn      string            `json:"runs-on"`
	Timeout     int               `json:"timeout-minutes"`
	Steps       []step            `json:"steps"`
}

type step struct {
	Uses string         `json:"uses"`
	With map[string]any `json:"with"`
}

// workflows returns all workflows, by file.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	kit.Must(t, err)
	found := map[string]workflow{}
	for _, file := range files {
		var w workflow
		if err := yaml.Unmarshal(read(t, file), &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(file)] = w
	}
	if len(found) != 2 {
		t.Fatalf("%d workflows, want ci.yml and release.yml", len(found))
	}
	return found
}

// writes has the rights of jobs beyond reading, and no other job has any.
var writes = map[string][]string{
	"release.yml release": {"attestations", "contents", "id-token", "packages"},
}

// A workflow may read, and a job has only the rights listed above. It runs on a named
// system, has a time limit, and leaves no credentials for later steps.
func TestWorkflowsHaveTheLeastRights(t *testing.T) {
	for file, w := range workflows(t) {
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v, want contents: read", file, w.Permissions)
		}
		for name, j := range w.Jobs {
			var got []string
			for right, level := range j.Permissions {
				if level == "write" {
					got = append(got, right)
				}
			}
			slices.Sort(got)
			if want := writes[file+" "+name]; !slices.Equal(got, want) || len(got) != len(j.Permissions) {
				t.Errorf("%s: job %s may write %v, want %v", file, name, got, want)
			}
			if j.Timeout == 0 || strings.HasSuffix(j.RunsOn, "latest") {
				t.Errorf("%s: job %s runs on %q for %d minutes", file, name, j.RunsOn, j.Timeout)
			}
		}
	}
}

// Actions are pinned to a commit, with the version in a comment: a tag can be moved.
func TestActionsArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	for file, w := range workflows(t) {
		text := read(t, root, ".github", "workflows", file)
		for name, j := range w.Jobs {
			for _, s := range j.Steps {
				if s.Uses == "" {
					continue
				}
				if !pinned.MatchString(s.Uses) || !regexp.MustCompile(regexp.QuoteMeta(s.Uses)+` # v\d+\.\d+\.\d+\n`).Match(text) {
					t.Errorf("%s: job %s uses %s, want a commit, and behind it its version", file, name, s.Uses)
				}
				if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token in the checkout", file, name)
				}
			}
		}
	}
}

// The table of docs/images.md lists every overlay, and nothing else.
func TestOverlaysAreTold(t *testing.T) {
	told := matches(read(t, root, "docs", "images.md"), "(?m)^\\| `overlays/([a-z0-9/-]+)` \\|")
	overlays := filepath.Join(root, "manifests", "overlays")
	var there []string
	err := filepath.WalkDir(overlays, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "kustomization.yaml" {
			var folder string
			folder, err = filepath.Rel(overlays, filepath.Dir(name))
			there = append(there, filepath.ToSlash(folder))
		}
		return err
	})
	kit.Must(t, err)
	slices.Sort(told)
	if slices.Sort(there); !slices.Equal(told, there) {
		t.Errorf("the table has %v, and there are %v", told, there)
	}
}
