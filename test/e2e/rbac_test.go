package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/kit"
)

// right is a permission of a role, or one that a request needs. The name is empty in a
// rule for all objects of the resource.
type right struct {
	user, group, resource, verb, name string
}

func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		resource += "." + r.group
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", r.user, r.verb, resource, r.name))
}

// exception is rights that are granted or used, but not both.
type exception struct {
	user, verb, resource string
	// name is a part of the object's name.
	name, reason string
}

// unusedRights are granted, but a run may not use them.
func unusedRights() []exception {
	return []exception{
		{kit.LocalAgent, "list", "*", "", "informers list where the API server does not stream lists (WatchList): before Kubernetes 1.32, or with the feature off"},
		{kit.WebhookUser, "list", "*", "", "the same"},
		{kit.LocalAgent, "*", "leases.coordination.k8s.io", ".shard-", "agents with --shards use it: test/ha has them"},
		{kit.LocalAgent, "own", "objects.krake.dev", "", "a policy asks for it"},
	}
}

// ungrantedRights are used, although the manifests do not grant them.
func ungrantedRights() []exception {
	return []exception{
		{kit.LocalAgent, "*", "songs.music.example.com", "", "the tests add the kind, and a role for it as the documentation says"},
		{kit.LocalAgent, "*", "artists.music.example.com", "", "the same"},
		{kit.LocalAgent, "*", "concerts.stage.example.com", "", "the same"},
		{kit.LocalAgent, "*", "resourcequotas", "", "the same, of kinds that are built in"},
		{kit.LocalAgent, "*", "secrets", "", "the same"},
		{kit.LocalAgent, "*", "limitranges", "", "the same"},
	}
}

// Webhook and agent have exactly the rights that they use: the audit log has each right
// of the shipped roles, and only those. Requests of other tests count as well, but none
// of them is needed.
func TestRBACGrantedIsUsed(t *testing.T) {
	auditMark(t) // or skip
	useEveryKind(t)
	scrape(t)
	granted := grantedRights(t)
	awaitRenewals(t, granted)
	used := usedRights(t)
	t.Logf("%d rights are granted, %d used", len(granted), len(used))
	if len(granted) < 90 || len(used) < 50 {
		t.Error("that are too few for the roles and the log to have been read")
	}
	for g := range granted {
		if !used[g] && !isExcepted(g, unusedRights()) && (g.group != claims || servesClaims(t)) {
			t.Errorf("granted, but not used: %s", g)
		}
	}
	for u := range used {
		if !granted[u] && !isExcepted(u, ungrantedRights()) {
			t.Errorf("used, but not granted by our manifests: %s", u)
		}
	}
	for _, exception := range slices.Concat(unusedRights(), ungrantedRights()) {
		t.Logf("excepted: %s: %s %s %s: %s", exception.user, exception.verb, exception.resource, exception.name, exception.reason)
	}
	if forbidden, err := forbiddenRequests(); err != nil || len(forbidden) > 0 {
		t.Errorf("%v; webhook or agent tried what they may not: %q", err, forbidden)
	}
}

// awaitRenewals waits until each Lease was renewed.
func awaitRenewals(t *testing.T, granted map[right]bool) {
	t.Helper()
	kit.Eventually(t, func() string {
		used := usedRights(t)
		for g := range granted {
			if g.resource == "leases" && !used[g] && !isExcepted(g, unusedRights()) {
				return fmt.Sprintf("not used yet: %s", g)
			}
		}
		return ""
	})
}

func isExcepted(r right, exceptions []exception) bool {
	resource := schema.GroupResource{Group: r.group, Resource: r.resource}.String()
	for _, e := range exceptions {
		if e.user == r.user && (e.verb == "*" || e.verb == r.verb) && (e.resource == "*" || e.resource == resource) && strings.Contains(r.name, e.name) {
			return true
		}
	}
	return false
}

// claims is the API group of ResourceClaims. Its version v1 came with Kubernetes 1.34.
const claims = "resource.k8s.io"

func servesClaims(t *testing.T) bool {
	t.Helper()
	_, err := hub.Discovery().ServerResourcesForGroupVersion(claims + "/v1")
	if !apierrors.IsNotFound(err) {
		kit.Must(t, err)
	}
	return err == nil
}

// useEveryKind makes an Application with an object of each kind, which then drifts
// twice, loses its label, and is deleted.
func useEveryKind(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t)
	text, err := os.ReadFile("testdata/workloads.yaml")
	kit.Must(t, err)
	var documents []string
	var resources []schema.GroupVersionResource
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		kit.Must(t, yaml.Unmarshal([]byte(document), &kind))
		gvk := kind.GroupVersionKind()
		if gvk.Group == claims && !servesClaims(t) {
			continue
		}
		documents = append(documents, document)
		plural := map[string]string{"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}[gvk.Kind]
		if plural == "" {
			plural = strings.ToLower(gvk.Kind) + "s"
		}
		resources = append(resources, gvk.GroupVersion().WithResource(plural))
	}
	awaitTrials(t, namespace, documents) // on a busy machine, the webhook has no time to try all of them at once
	createApplication(t, namespace, "everything", strings.Join(documents, "\n---\n"), "")
	eventuallyReconciled(t, namespace, "everything") // the claims wait for a volume and for a device forever
	for _, resource := range resources {
		for range 2 { // the second time, the Event is patched
			hub.Change(t, resource, namespace, "all", `{"metadata": {"labels": {"revision": "2"}}}`)
			hub.EventuallyField(t, "1", resource, namespace, "all", "metadata", "labels", "revision")
		}
		mark := kit.Field(hub.Get(t, resource, namespace, "all"), "metadata", "labels", "krake.dev/owned-by")
		hub.Change(t, resource, namespace, "all", `{"metadata": {"labels": {"krake.dev/owned-by": null}}}`)
		hub.EventuallyField(t, mark, resource, namespace, "all", "metadata", "labels", "krake.dev/owned-by")
	}
	remove(t, namespace, "everything")
	for _, resource := range resources {
		if hub.Get(t, resource, namespace, "all") != nil {
			t.Errorf("%s is still there", resource.Resource)
		}
	}
}

// awaitTrials waits until the webhook has tried each of these objects of an Application with a dry run.
func awaitTrials(t *testing.T, namespace string, documents []string) {
	t.Helper()
	config, warnings := hub.RESTConfig(), &strings.Builder{}
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{})
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	for _, document := range documents {
		kit.Eventually(t, func() string {
			warnings.Reset()
			_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), kit.Application(namespace, "tried", document), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil || strings.Contains(warnings.String(), "not tried with a dry run") {
				return fmt.Sprintf("%v: %s", err, warnings)
			}
			return ""
		})
	}
}

// scrape reads the metrics with an account that may read them, and with one that may
// not.
func scrape(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t)
	hub.Make(t, namespace, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: visitor}}")
	visitor := hub.Token(t, namespace, "visitor")
	reader := metricsReader(t, namespace)
	for _, url := range metricsURLs(t) {
		if code, _ := fetch(t, url, ""); code != http.StatusUnauthorized {
			t.Errorf("nobody is answered %d, want %d", code, http.StatusUnauthorized)
		}
		if code, _ := fetch(t, url, "wrong"); code == http.StatusOK { // controller-runtime reports an error of its own
			t.Error("a wrong token is answered")
		}
		if code, _ := fetch(t, url, visitor); code != http.StatusForbidden {
			t.Errorf("a ServiceAccount without the right is answered %d, want %d", code, http.StatusForbidden)
		}
		awaitMetrics(t, url, reader)
	}
}

// metricsURLs returns the addresses of the metrics of webhook and agent.
func metricsURLs(t *testing.T) []string {
	t.Helper()
	urls, err := both.MetricsURLs(t.Context())
	kit.Must(t, err)
	return urls
}

// metricsReader returns the token of an account that may read the metrics.
func metricsReader(t *testing.T, namespace string) string {
	t.Helper()
	t.Cleanup(hub.Make(t, namespace, strings.ReplaceAll(`
{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: krake-metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: NAME}]
`, "NAME", namespace)))
	return hub.Token(t, namespace, "prometheus")
}

// awaitMetrics reads metrics. It repeats the request, because a refusal may be cached
// for a while.
func awaitMetrics(t *testing.T, url, token string) (metrics string) {
	t.Helper()
	kit.Eventually(t, func() string {
		code, text := fetch(t, url, token)
		if metrics = text; code == http.StatusOK && strings.Contains(text, "krake_") {
			return ""
		}
		return fmt.Sprintf("the metrics are answered %d", code)
	})
	return metrics
}

func fetch(t *testing.T, url, token string) (code int, text string) {
	t.Helper()
	code, text, err := kit.TryFetch(t.Context(), url, token)
	kit.Must(t, err)
	return code, text
}

// grantedRights returns the rights of webhook and agent in the shipped roles.
func grantedRights(t *testing.T) map[right]bool {
	t.Helper()
	roles, bindings := shippedRoles(t)
	rights := map[right]bool{}
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			user := "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
			if subject.Kind == rbacv1.GroupKind && subject.Name == "system:serviceaccounts:krake-agents" {
				user = kit.LocalAgent
			}
			if user != kit.LocalAgent && user != kit.WebhookUser {
				t.Fatalf("%s binds %s", binding.Name, user)
			}
			for _, rule := range rulesOf(t, binding.RoleRef, roles) {
				maps.Copy(rights, rightsOf(user, rule))
			}
		}
	}
	return rights
}

// shippedRoles reads ClusterRoles and their bindings from the manifests, and also Roles
// and RoleBindings, which have the same fields.
func shippedRoles(t *testing.T) (roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) {
	t.Helper()
	err := fs.WalkDir(manifests.Files, "base", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := manifests.Files.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			var binding rbacv1.ClusterRoleBinding
			if err := yaml.Unmarshal([]byte(document), &role); err == nil && strings.HasSuffix(role.Kind, "Role") {
				roles = append(roles, role)
			}
			if err := yaml.Unmarshal([]byte(document), &binding); err == nil && strings.HasSuffix(binding.Kind, "RoleBinding") {
				bindings = append(bindings, binding)
			}
		}
		return nil
	})
	kit.Must(t, err)
	return roles, bindings
}

// rulesOf returns the rules of a role, or of the roles that it aggregates.
func rulesOf(t *testing.T, ref rbacv1.RoleRef, roles []rbacv1.ClusterRole) []rbacv1.PolicyRule {
	t.Helper()
	at := slices.IndexFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Kind == ref.Kind && role.Name == ref.Name })
	if at < 0 {
		t.Fatalf("there is no %s %s", ref.Kind, ref.Name)
	}
	rules := roles[at].Rules
	if roles[at].AggregationRule == nil {
		return rules
	}
	for _, selector := range roles[at].AggregationRule.ClusterRoleSelectors {
		selects, err := metav1.LabelSelectorAsSelector(&selector)
		kit.Must(t, err)
		for _, role := range roles {
			if role.Kind == "ClusterRole" && selects.Matches(labels.Set(role.Labels)) {
				rules = append(rules, role.Rules...)
			}
		}
	}
	return rules
}

func rightsOf(user string, rule rbacv1.PolicyRule) map[right]bool {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	rights := map[right]bool{}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights[right{user, group, resource, verb, name}] = true
				}
			}
		}
	}
	return rights
}

// ourRequests returns the requests of webhook and agent in the whole run.
func ourRequests() ([]kit.Request, error) {
	return kit.WholeAudit(hub.Cluster).Find(func(r kit.Request) bool {
		return r.User.Username == kit.LocalAgent || r.User.Username == kit.WebhookUser
	})
}

// usedRights returns the rights that webhook and agent have used. A right has a name if
// a rule for its resource and verb has names.
func usedRights(t *testing.T) map[right]bool {
	t.Helper()
	requests, err := ourRequests()
	kit.Must(t, err)
	granted := grantedRights(t)
	rights := map[right]bool{}
	for _, e := range requests {
		if e.Object.Resource == "" { // discovery, which every user may read
			continue
		}
		used := right{e.User.Username, e.Object.Group, e.Resource(), e.Verb, ""}
		if !granted[used] && e.Object.Name != "" {
			used.name = e.Object.Name
		}
		if !granted[used] {
			used.name = ""
		}
		rights[used] = true
	}
	return rights
}

// forbiddenRequests returns the refused requests of webhook and agent, except for
// objects in namespaces that are being deleted.
func forbiddenRequests() ([]string, error) {
	requests, err := ourRequests()
	if err != nil {
		return nil, fmt.Errorf("look for refused requests: %w", err)
	}
	var forbidden []string
	for _, e := range requests {
		if e.IsForbidden() && !strings.Contains(e.Status.Message, "exceeded quota: ") { // a quota refuses what a permission allows
			forbidden = append(forbidden, fmt.Sprintf("%s: %s %s: %s", e.User.Username, e.Verb, e.URI, e.Status.Message))
		}
	}
	return forbidden, nil
}
