package kubectl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// PowerShell's > writes UTF-16. kubectl krake reads such files as kubectl does, in both orders of bytes. An
// Application that kubectl makes of one in another way is refused, with the remedy.
func TestFilesOfPowerShell(t *testing.T) {
	kit.Must(t, installed.Look())
	namespace := "powershell"
	namespaceFor(t, namespace)
	folder := t.TempDir()
	// Each text is another kind of file that people have.
	texts := map[string]string{
		"manifest":    "apiVersion: v1\r\nkind: Service\r\nmetadata: {name: bücher}\r\nspec: {ports: [{port: 80}]}\r\n---\r\napiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: grüße}\r\n",
		"json":        `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "json"}, "data": {"a": "größer 😀"}}`,
		"application": kit.YAML(t, kit.Application(namespace, "whole", "{apiVersion: v1, kind: ConfigMap, metadata: {name: inner}, data: {a: schön}}")),
	}
	texts["manifest"] = strings.NewReplacer("bücher", "books", "grüße", "hello").Replace("# für alle\r\n" + texts["manifest"])
	for order, encoding := range map[string]unicode.Endianness{"le": unicode.LittleEndian, "be": unicode.BigEndian} {
		for name, text := range texts {
			encoded, err := unicode.UTF16(encoding, unicode.UseBOM).NewEncoder().String(text)
			kit.Must(t, err)
			kit.Must(t, os.WriteFile(filepath.Join(folder, name+"-"+order), []byte(encoded), 0o600))
		}
		for _, name := range []string{"manifest", "json"} {
			app := name + "-" + order
			krake(t, "create", app, "-f", filepath.Join(folder, app), "--namespace", namespace)
			kit.Eventually(t, func() string {
				if state := hub.App(namespace, app).Read(t).Status.State; state != application.StateRunning {
					return string(state)
				}
				return ""
			})
			hub.Kubectl(t, "--namespace", namespace, "delete", "configmap", app)
			hub.EventuallyGone(t, kit.ConfigMaps, namespace, app)
		}
		printed, _ := krake(t, "render", "-f", filepath.Join(folder, "application-"+order), "--namespace", namespace)
		if !strings.Contains(printed, "schön") {
			t.Errorf("%s: rendered as %s", order, printed)
		}
	}

	// kubectl puts such a file into the binary data. Without a byte order mark, it is a text with NULs.
	file := filepath.Join(folder, "manifest-le")
	made := hub.Kubectl(t, "create", "configmap", "odd", "--from-file=spec.manifest="+file, "--dry-run=client", "-o", "yaml")
	made = strings.Replace(made, "metadata:", "metadata:\n  annotations: {krake.dev/application: v1}", 1)
	encoded, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	kit.Must(t, err)
	for why, c := range map[string]struct{ input, want string }{
		"binary data":              {made, "binaryData.spec.manifest: Forbidden: kubectl puts a file there whose text is not UTF-8, such as one in UTF-16, as PowerShell writes it with >: save the file as UTF-8"},
		"text with NULs":           {kit.YAML(t, kit.Application(namespace, "odd", encoded)), "document 1: parse YAML: line 1: control characters are not allowed"},
		"text of another encoding": {kit.YAML(t, kit.Application(namespace, "odd", "\ufffd\ufffda\x00:\x00 \x001\x00")), "save it as UTF-8"},
	} {
		said, err := kit.TryKubectl(t.Context(), hub.Cluster, c.input, "--namespace", namespace, "create", "-f", "-")
		if err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v: %s", why, err, said)
		}
	}
}
