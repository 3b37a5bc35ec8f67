package habitat

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// "Without cluster-wide rights": installed from overlays/habitat/namespaced, Habitats
// of the enabled namespaces are fully supported. The controllers know nothing about
// other namespaces, and have no rights there.
func TestNamespaced(t *testing.T) {
	kit.Long(t, "a control plane of its own")
	t.Parallel()
	const overlay = "habitat/namespaced"
	p := ownPlane(t, installation.Options{Overlay: overlay})
	inside, also, outside := home{p, "inside"}, home{p, "also"}, home{p, "outside"}
	for _, h := range []home{inside, also, outside} {
		p.CreateNamespace(t, h.namespace)
	}
	for _, h := range []home{inside, also} {
		h.kubectl(t, "apply", "-k", filepath.Join(p.installation.Manifests(), "overlays", "habitat", "namespace"))
	}
	from, err := p.installation.HabitatKubeconfig(t.Context())
	kit.Must(t, err)
	process, err := p.installation.RunHabitat(t.Context(), "habitat-namespaced", from, "--namespaces=inside,also")
	kit.Must(t, err)
	t.Cleanup(func() {
		p.hearLog(t, process.Process().Log())
		if t.Failed() {
			kit.ShowLog(process.Process().Log())
		}
	})
	kit.Must(t, process.WaitReady(t.Context()))

	outside.create(t, habitats, service("web", 1, nil))
	for _, h := range []home{inside, also} {
		h.create(t, habitats, service("db", 3, object{"updateStrategy": "OnDelete", "service": with("db", "leader", object{"configSecretName": "toml-of-db"})}))
		h.run(t, old("flat", 1))
		h.secret(t, "toml-of-db", "user.toml")
		h.mustRun(t, "db")
		h.mustHavePeer(t, 4)
		h.edit(t, "db", `{"image": "registry.test/hab/db:2"}`)
		h.mustRoll(t, "db", "registry.test/hab/db:2")
		h.kubectl(t, "scale", "statefulset", "db", "--replicas=1")
		h.mustTell(t, "db", "Warning", "Overwritten", "spec.replicas")
		h.delete(t, habitats, "flat")
		h.mustGo(t, kit.Deployments, "flat")
		h.mustHavePeer(t, 3)
	}
	if live := outside.get(t, habitats, "web"); live.Object["status"] != nil {
		t.Errorf("a Habitat of a namespace that does not take part has a status: %v", live.Object["status"])
	}
	for _, name := range []string{"habitat-web", "habitat-peers", "peer-watch-file"} {
		if outside.get(t, kit.ConfigMaps, name) != nil {
			t.Errorf("in a namespace that does not take part is a ConfigMap %s", name)
		}
	}
	outside.checkPowerless(t)
	p.checkNamespaces(t, "inside", "also", application.SystemNamespace)
}

// checkPowerless fails if the controllers have any right in the namespace, or on any
// cluster-scoped resource.
func (h home) checkPowerless(t *testing.T) {
	t.Helper()
	may := func(arguments ...string) bool {
		said, err := kit.TryKubectl(t.Context(), h.Cluster, "",
			append([]string{"--namespace", h.namespace, "auth", "can-i", "--as=" + kit.HabitatUser}, arguments...)...)
		if said = strings.TrimSpace(said); !strings.HasSuffix(said, "yes") && !strings.HasSuffix(said, "no") {
			t.Fatalf("kubectl auth can-i %v: %v: %s", arguments, err, said)
		}
		return strings.HasSuffix(said, "yes")
	}
	for _, resource := range []string{"habitats", "configmaps", "pods", "secrets", "statefulsets.apps", "deployments.apps", "applications.krake.dev"} {
		for _, verb := range []string{"get", "list", "create", "patch", "delete"} {
			if may(verb, resource) {
				t.Errorf("what carries out Habitats may %s %s in a namespace that does not take part", verb, resource)
			}
		}
	}
	for _, verb := range []string{"get", "list", "create", "update", "patch"} {
		if may(verb, "customresourcedefinitions") || may(verb, "namespaces") {
			t.Errorf("what carries out Habitats may %s what is in no namespace", verb)
		}
	}
	if !may("list", "habitats", "--namespace=inside") {
		t.Error("kubectl auth can-i says no to everything")
	}
}

// checkNamespaces fails if the controllers requested anything outside these namespaces,
// or anything cluster-scoped.
func (p *plane) checkNamespaces(t *testing.T, namespaces ...string) {
	t.Helper()
	asked := kit.WholeAudit(p.Cluster).Requests(t, kit.By(kit.HabitatUser), func(l kit.Request) bool { return l.Object.Resource != "" })
	for _, l := range asked {
		if !slices.Contains(namespaces, l.Object.Namespace) {
			t.Errorf("beyond its namespaces: %s", l)
		}
	}
	t.Logf("%d requests, all of them in %v", len(asked), namespaces)
	if len(asked) == 0 {
		t.Error("the audit log has no requests")
	}
}
