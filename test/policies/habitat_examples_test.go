package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Warnings about deprecated Habitats, and their form from the server.
const (
	sayDeprecated = "customVersion v1beta1 is deprecated, and will be removed: use customVersion: v1beta2 with spec.v1beta2"

	deprecated = "Validation failed for ValidatingAdmissionPolicy 'krake-habitat-deprecated' with binding 'krake-habitat-deprecated': " + sayDeprecated
)

// The server stores a Habitat of a deprecated version with a warning. A warning at its
// deletion would come too late.
func TestDeprecatedHabitats(t *testing.T) {
	namespace := newNamespace(t)
	await(t, namespaceEditor, "delete", "habitat.sh", "habitats", namespace)
	edits, controls := namespaceEditor.mustClient(t), controller.mustClient(t)
	resource := edits.dynamic.Resource(habitats).Namespace(namespace)
	for _, c := range []struct{ what, of, change, want string }{
		{"no version", v1beta1Habitat, "", deprecated},
		{"an empty one", v1beta1Habitat, `customVersion: ""`, deprecated},
		{"v1beta1", v1beta1Habitat, "customVersion: v1beta1", deprecated},
		{"v1beta2", v1beta2Habitat, "", ""},
		{"one that nobody knows", v1beta2Habitat, "customVersion: v1beta3", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			edits.said.take()
			expectWarning := func(what, want string, err error) {
				t.Helper()
				if got := edits.said.take(); got != want || err != nil {
					t.Errorf("%s: %v, the server warns %q, want %q", what, err, got, want)
				}
			}
			of := habitatOf(c.of, c.change)
			of.SetFinalizers([]string{"example.org/theirs"})
			patch := func(text string) error {
				return kit.ErrorOf(resource.Patch(t.Context(), "shop", types.MergePatchType, []byte(text), metav1.PatchOptions{}))
			}
			expectWarning("create it", c.want, kit.ErrorOf(resource.Create(t.Context(), of, metav1.CreateOptions{})))
			expectWarning("change it", c.want, patch(`{"metadata":{"labels":{"a":"b"}}}`))
			expectWarning("delete it", "", resource.Delete(t.Context(), "shop", metav1.DeleteOptions{}))
			// The server tries a patch on its cached object first. Without the deletion in the
			// cache, that try, which is then repeated, would warn.
			kit.EventuallyTrue(t, "the server's cache does not have the deletion", func() bool {
				cached, err := resource.Get(t.Context(), "shop", metav1.GetOptions{ResourceVersion: "0"})
				kit.Must(t, err)
				return cached.GetDeletionTimestamp() != nil
			})
			expectWarning("let it go", "", patch(`{"metadata":{"finalizers":null}}`))
		})
	}
	kit.Must(t, kit.ErrorOf(resource.Create(t.Context(), habitatOf(v1beta1Habitat, ""), metav1.CreateOptions{})))
	controls.said.take()
	_, err := controls.dynamic.Resource(habitats).Namespace(namespace).Patch(t.Context(), "shop", types.MergePatchType,
		[]byte(`{"status":{"state":"RUNNING"}}`), metav1.PatchOptions{}, "status")
	if said := controls.said.take(); err != nil || said != "" {
		t.Errorf("the controller writes the status: %v, and is warned: %s", err, said)
	}
}

// The server accepts the examples unchanged, and warns about the one of a deprecated
// version.
func TestExamplesOfHabitats(t *testing.T) {
	namespace := newNamespace(t)
	const folder = "../../examples/habitat"
	files, err := os.ReadDir(folder)
	kit.Must(t, err)
	for _, file := range files {
		path, want := filepath.Join(folder, file.Name()), ""
		if file.Name() == "v1beta1.yaml" {
			want = deprecated
		}
		if said := checkExample(t, path, namespace); said != want {
			t.Errorf("%s: the server warns %q", path, said)
		}
	}
	if len(files) < 9 {
		t.Errorf("there are only %d examples", len(files))
	}
}

// checkExample checks that the Habitats of a file can be carried out with the Secrets in it, and that the server accepts all. It
// returns the warnings of the server.
func checkExample(t *testing.T, path, namespace string) (said string) {
	t.Helper()
	text, err := os.ReadFile(path)
	kit.Must(t, err)
	secrets, count := map[string]map[string]any{}, 0
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := mustRead(document)
		warned, err := put(t.Context(), &unstructured.Unstructured{Object: object}, namespace, dry...)
		kit.Must(t, err)
		said += warned
		switch object["kind"] {
		case "Secret":
			secrets[object["metadata"].(map[string]any)["name"].(string)] = object["stringData"].(map[string]any)
		case habitat.Kind:
			count++
			of, mistakes := habitat.Parse(object)
			if len(mistakes) > 0 {
				t.Errorf("%s: %v", path, mistakes)
			}
			for _, secret := range of.Secrets() {
				has := secrets[secret.Name]
				if _, ok := has[secret.Key]; len(has) == 0 || secret.Key != "" && !ok {
					t.Errorf("%s: %s wants a Secret %q with %q", path, of.Name, secret.Name, secret.Key)
				}
			}
		}
	}
	if count == 0 {
		t.Errorf("%s has no Habitat", path)
	}
	return said
}
