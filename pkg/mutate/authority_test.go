package mutate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

func refTo(group, resource, namespace, name string) manifest.Ref {
	return manifest.Ref{
		ID:       manifest.ID{Kind: resource, Namespace: namespace, Name: name},
		Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
	}
}

// The rights that an Application requires of its user, each once, with the first place that
// requires it.
func TestNeeds(t *testing.T) {
	deployment, config := refTo("apps", "deployments", "demo", "a"), refTo("", "configmaps", "demo", "a")
	tests := []struct {
		why          string
		annotations  map[string]string
		wanted, left []manifest.Ref
		want         []string
	}{
		{"away from another cluster, where its objects are deleted", map[string]string{"was": "edge"}, nil, nil, []string{
			`metadata.annotations[krake.dev/cluster]: deploy-to clusters.krake.dev "edge"`,
		}},
		{"of a ConfigMap that others may be writing", map[string]string{"was": "plain"}, nil, nil, []string{
			`metadata.annotations[krake.dev/application]: delete applications.krake.dev "web" in namespace "demo"`,
		}},
		{"from one to another", map[string]string{"krake.dev/cluster": "far", "was": "edge"}, nil, nil, []string{
			`metadata.annotations[krake.dev/cluster]: deploy-to clusters.krake.dev "far"`,
			`metadata.annotations[krake.dev/cluster]: deploy-to clusters.krake.dev "edge"`,
		}},
		{"nothing is wanted", nil, nil, nil, nil},
		{"create, patch and delete of each resource, however many objects", nil,
			[]manifest.Ref{deployment, config, refTo("apps", "deployments", "demo", "b")}, nil, []string{
				`data.spec.manifest[0]: create deployments.apps in namespace "demo"`,
				`data.spec.manifest[0]: patch deployments.apps in namespace "demo"`,
				`data.spec.manifest[0]: delete deployments.apps in namespace "demo"`,
				`data.spec.manifest[1]: create configmaps in namespace "demo"`,
				`data.spec.manifest[1]: patch configmaps in namespace "demo"`,
				`data.spec.manifest[1]: delete configmaps in namespace "demo"`,
			}},
		{"an object that exists already, whose values the status then shows", map[string]string{"krake.dev/adopt": "true"},
			[]manifest.Ref{config}, []manifest.Ref{deployment}, []string{
				`data.spec.manifest[0]: get configmaps in namespace "demo"`,
				`data.spec.manifest[0]: create configmaps in namespace "demo"`,
				`data.spec.manifest[0]: patch configmaps in namespace "demo"`,
				`data.spec.manifest[0]: delete configmaps in namespace "demo"`,
				`data.spec.manifest: create deployments.apps in namespace "demo"`,
				`data.spec.manifest: patch deployments.apps in namespace "demo"`,
				`data.spec.manifest: delete deployments.apps in namespace "demo"`,
			}},
		{"in each namespace, and in none", nil,
			[]manifest.Ref{config, refTo("", "configmaps", "other", "a"), refTo("", "namespaces", "", "n")}, nil, []string{
				`data.spec.manifest[0]: create configmaps in namespace "demo"`,
				`data.spec.manifest[0]: patch configmaps in namespace "demo"`,
				`data.spec.manifest[0]: delete configmaps in namespace "demo"`,
				`data.spec.manifest[1]: create configmaps in namespace "other"`,
				`data.spec.manifest[1]: patch configmaps in namespace "other"`,
				`data.spec.manifest[1]: delete configmaps in namespace "other"`,
				"data.spec.manifest[2]: create namespaces",
				"data.spec.manifest[2]: patch namespaces",
				"data.spec.manifest[2]: delete namespaces",
			}},
		{"what left the manifest will be deleted", nil, nil, []manifest.Ref{config}, []string{
			`data.spec.manifest: create configmaps in namespace "demo"`,
			`data.spec.manifest: patch configmaps in namespace "demo"`,
			`data.spec.manifest: delete configmaps in namespace "demo"`,
		}},
		{"another cluster", map[string]string{"krake.dev/cluster": "edge"}, nil, nil, []string{
			`metadata.annotations[krake.dev/cluster]: deploy-to clusters.krake.dev "edge"`,
		}},
		{"this cluster by its name", map[string]string{"krake.dev/cluster": "local"}, nil, nil, nil},
		{"an identity to act as", map[string]string{"krake.dev/service-account": "deployer"}, nil, nil, []string{
			`metadata.annotations[krake.dev/service-account]: impersonate serviceaccounts "deployer" in namespace "demo"`,
		}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm, stored := submitted(), submitted()
			cm.Annotations = test.annotations
			stored.Annotations = map[string]string{"krake.dev/application": "v1", "krake.dev/cluster": test.annotations["was"]}
			if test.annotations["was"] == "plain" {
				stored.Annotations = nil
			}
			var got []string
			for _, need := range (mutate.Accounts{}).Needs(cm, stored, test.wanted, test.left) {
				got = append(got, need.Path+": "+need.String())
			}
			check.Equal(t, "needs", test.want, got)
		})
	}
}

// An Application without an account uses the agent, or the default account where one is
// required. Its user must be allowed to act as that identity.
func TestAccounts(t *testing.T) {
	for _, test := range []struct {
		why      string
		named    string
		required bool
		want     string
	}{
		{"the agent itself", "", false, ""},
		{"the account that it names", "builder", false, `impersonate serviceaccounts "builder" in namespace "demo"`},
		{"the default one", "", true,
			`impersonate serviceaccounts "krake-deployer" in namespace "demo": an Application that names no account is carried out as this one`},
		{"the one that it names, and not the default one", "builder", true, `impersonate serviceaccounts "builder" in namespace "demo"`},
	} {
		cm := submitted()
		if test.named != "" {
			cm.Annotations["krake.dev/service-account"] = test.named
		}
		accounts := mutate.Accounts{Required: test.required}
		got := ""
		for _, need := range accounts.Needs(cm, &corev1.ConfigMap{}, nil, nil) {
			got += need.String()
			if need.Because != "" {
				got += ": " + need.Because
			}
			check.Equal(t, test.why+": path", "metadata.annotations[krake.dev/service-account]", need.Path)
		}
		check.Equal(t, test.why, test.want, got)
	}
}

func TestLeft(t *testing.T) {
	a, b := refTo("", "configmaps", "demo", "a"), refTo("", "configmaps", "demo", "b")
	newer := a
	newer.Resource.Version = "v2"
	check.Equal(t, "left", []manifest.Ref{b}, mutate.Left([]manifest.Ref{newer}, []manifest.Ref{a, {}, b}))
}
