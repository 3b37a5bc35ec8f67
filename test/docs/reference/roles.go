package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
)

// role is a shipped Role or ClusterRole, as in its file.
type role struct {
	rbacv1.ClusterRole

	folder string
}

// title returns "ClusterRole krake-webhook".
func (r role) title() string {
	return r.Kind + " " + strings.ReplaceAll(r.Name, manifests.ClusterName, "CLUSTER")
}

// rolesOf reads all roles of the manifests, sorted. Overlays name the roles of an agent
// after its cluster, unless that is local.
func rolesOf() ([]role, error) {
	var found []role
	err := eachDocument(func(name string, document []byte) error {
		one := role{folder: path.Dir(name)}
		if err := yaml.Unmarshal(document, &one.ClusterRole); err != nil {
			return err
		}
		if one.Kind == "Role" || one.Kind == "ClusterRole" {
			found = append(found, one)
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b role) int { return cmp.Compare(a.title(), b.title()) })
	return found, err
}

// namesOf returns the names of all objects of a kind in the manifests.
func namesOf(kind string) ([]string, error) {
	var names []string
	err := eachDocument(func(_ string, document []byte) error {
		var object metav1.PartialObjectMetadata
		err := yaml.Unmarshal(document, &object)
		if object.Kind == kind {
			names = append(names, object.Name)
		}
		return err
	})
	return names, err
}

// eachDocument calls do for each YAML document of the manifests that is an object.
func eachDocument(do func(name string, document []byte) error) error {
	return fs.WalkDir(manifests.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" || path.Base(name) == "kustomization.yaml" {
			return err
		}
		text, err := manifests.Files.ReadFile(name)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			if err := do(name, document); err != nil {
				return fmt.Errorf("manifests/%s: %w", name, err)
			}
		}
		return nil
	})
}

func roles(p *page, _ string) error {
	found, err := rolesOf()
	if err != nil {
		return err
	}
	p.section("Roles", "All that are shipped, with their rights; what each is for: [permissions.md](permissions.md). "+
		"Those of the agent of an enrolled cluster are called after it, as `krake-agent-CLUSTER`.")
	var rows [][]string
	for _, one := range found {
		var rights []string
		if one.AggregationRule != nil {
			rights = append(rights, "those of the ClusterRoles with the label "+code(labelsOf(one)))
		}
		for _, rule := range one.Rules {
			rights = append(rights, rightsOf(rule))
		}
		rows = append(rows, []string{code(one.title()), code("manifests/" + one.folder), strings.Join(rights, "; ")})
	}
	p.table([]string{"role", "folder", "rights"}, rows)
	return nil
}

func labelsOf(one role) string {
	var texts []string
	for _, selector := range one.AggregationRule.ClusterRoleSelectors {
		for key, value := range selector.MatchLabels {
			texts = append(texts, key+": "+value)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// rightsOf returns "get, update leases.coordination.k8s.io krake-agent-local".
func rightsOf(rule rbacv1.PolicyRule) string {
	what := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			what = append(what, strings.TrimSuffix(resource+"."+group, "."))
		}
	}
	text := strings.Join(rule.Verbs, ", ") + " " + strings.Join(what, ", ")
	if len(rule.ResourceNames) > 0 {
		text += " " + strings.ReplaceAll(strings.Join(rule.ResourceNames, ", "), manifests.ClusterName, "CLUSTER")
	}
	return text
}
