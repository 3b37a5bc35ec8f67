package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/docs"
	"github.com/krake-observer/krake-observer/test/kit"
)

// blocks returns the first blocks of YAML below a heading of docs/gitops.md.
func blocks(t *testing.T, anchor string) []string {
	t.Helper()
	page, err := docs.Read("../../docs/gitops.md")
	kit.Must(t, err)
	var found []string
	for _, section := range page.Sections {
		for _, part := range section.Parts {
			if section.Anchor == anchor && part.Block != nil && part.Block.Is("yaml") {
				found = append(found, part.Block.Text)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no YAML below #%s", anchor)
	}
	return found
}

// build is kustomize build of a folder with these files, in a namespace.
func build(t *testing.T, namespace string, files map[string]string) *unstructured.Unstructured {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		kit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	kit.Must(t, err)
	if built.Size() != 1 {
		t.Fatalf("want one object, got %d", built.Size())
	}
	object, err := built.Resources()[0].Map()
	kit.Must(t, err)
	app := &unstructured.Unstructured{Object: object}
	app.SetNamespace(namespace)
	return app
}

// The kustomization of the documentation makes an Application of files, which is admitted
// and runs. Another version of the file is the same Application, because its name has no
// suffix.
func TestConfigMapGenerator(t *testing.T) {
	t.Parallel()
	found := blocks(t, "from-files-by-kustomize")
	files := map[string]string{
		"kustomization.yaml": found[0],
		"web.yaml":           strings.ReplaceAll(song, "NAME", "web"),
		"web-schema.yaml":    "{apiVersion: v1, kind: ConfigMap, metadata: {name: web-song}, data: {title: null}}",
	}
	engine := newFlux(t)
	namespace := hub.NewNamespace(t, "gitops")
	first := build(t, namespace, files)
	if got := engine.sync(t, first); got != ssa.CreatedAction {
		t.Errorf("the first apply: %s", got)
	}
	app := hub.App(namespace, "web")
	app.MustBe(t, application.StateRunning)

	files["web.yaml"] = strings.ReplaceAll(files["web.yaml"], "Octopus's Garden", "Piggies")
	second := build(t, namespace, files)
	if got := engine.sync(t, second); got != ssa.ConfiguredAction {
		t.Errorf("the second apply: %s", got)
	}
	app.MustBe(t, application.StateRunning)
	hub.EventuallyField(t, "Piggies", kit.ConfigMaps, namespace, "web-song", "data", "title")

	files["kustomization.yaml"] = strings.ReplaceAll(files["kustomization.yaml"], "disableNameSuffixHash: true", "disableNameSuffixHash: false")
	if name := build(t, namespace, files).GetName(); !strings.HasPrefix(name, "web-") || slices.Contains([]string{first.GetName(), second.GetName()}, name) {
		t.Errorf("without the option, the name is %s: the documentation says that it has a suffix", name)
	}
}
