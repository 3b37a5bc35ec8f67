package create

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// webhook answers creations of ConfigMaps. For each kind in refused it names a cause, one kind in
// each answer.
type webhook struct {
	refused  []string
	warnings []string
	exists   bool
	// tried and created are the names of the Applications, and the kinds in their manifests.
	tried, created []string
}

func (w *webhook) serve(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return server.URL
}

func (w *webhook) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	var cm corev1.ConfigMap
	text, err := io.ReadAll(request.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(text, nil, &cm)
	}
	if err != nil || request.Method != http.MethodPost {
		clitest.AnswerError(response, apierrors.NewBadRequest(fmt.Sprint(request.Method, err)))
		return
	}
	kinds := kindsIn(cm.Data[application.ManifestKey])
	if request.URL.Query().Get("dryRun") == "" {
		w.created = append(w.created, cm.Name+" "+strings.Join(kinds, " "))
	} else {
		w.tried = append(w.tried, cm.Name+" "+strings.Join(kinds, " "))
	}
	for _, text := range w.warnings {
		response.Header().Add("Warning", fmt.Sprintf("299 - %q", text))
	}
	if w.exists {
		clitest.AnswerError(response, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, cm.Name))
		return
	}
	for _, refused := range w.refused {
		for i, kind := range kinds {
			if kind == refused {
				path := field.NewPath("data").Child(application.ManifestKey).Index(i).Child("kind")
				clitest.AnswerError(response, apierrors.NewInvalid(schema.GroupKind{Kind: "Application"}, cm.Name, field.ErrorList{field.Forbidden(path, "have an administrator create it")}))
				return
			}
		}
	}
	clitest.Answer(response, http.StatusCreated, cm)
}

func kindsIn(manifest string) []string {
	var kinds []string
	for line := range strings.Lines(manifest) {
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	return kinds
}

func document(kind, rest string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: a}\n" + rest
}

func TestCreateAsksAgainUntilNothingUnsupportedIsLeft(t *testing.T) {
	files := map[string]string{"all.yaml": strings.Join([]string{
		document("ClusterRole", ""), document("Secret", "stringData: {a: b}\n"), document("ConfigMap", ""), document("Namespace", ""),
	}, "---\n")}
	const refusals = `all.yaml:1: ClusterRole a: %[1]s: have an administrator create it
all.yaml:5: Secret a: %[1]s: everyone with read access to ConfigMaps could see the values of the Secret: create it separately, with kubectl create secret or an operator for external or sealed secrets, and refer to it by its name
all.yaml:14: Namespace a: %[1]s: have an administrator create it
`
	tried := []string{"web ClusterRole ConfigMap Namespace", "web ConfigMap Namespace", "web ConfigMap"}
	for _, c := range []struct {
		why, flag, out, says string
		status               int
		created              []string
	}{
		{"one is enough to create nothing", "", "", fmt.Sprintf(refusals, "cannot belong to an Application") +
			"error: nothing is created: print these objects for kubectl apply with --only-unsupported, and create the others with --skip-unsupported\n", 2, nil},
		{"the others", "--skip-unsupported", "application demo/web created, with 1 object\n", fmt.Sprintf(refusals, "left out"), 0, []string{"web ConfigMap"}},
		{"these", "--only-unsupported", strings.Join([]string{document("ClusterRole", ""), document("Secret", "stringData: {a: b}\n"), document("Namespace", "")}, "---\n"), "", 0, nil},
	} {
		w := &webhook{refused: []string{"ClusterRole", "Namespace"}}
		arguments := []string{"create", "web", "-f", "all.yaml", "-n", "demo", "--server", w.serve(t)}
		if c.flag != "" {
			arguments = append(arguments, c.flag)
		}
		out, says, status := clitest.Invoke(t, Commands, files, arguments...)
		check.Equal(t, c.why+": output", c.out, out)
		check.Equal(t, c.why+": errors", c.says, says)
		check.Equal(t, c.why+": status", c.status, status)
		check.Equal(t, c.why+": tried", tried, w.tried)
		check.Equal(t, c.why+": created", c.created, w.created)
	}
}

// A mistake hides objects that only the webhook knows: without them, kubectl apply would get a part.
func TestOnlyUnsupportedReportsMistakes(t *testing.T) {
	const mistaken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  uid: x\n"
	secret := strings.Replace(document("Secret", "data: {a: Yg==}\n"), "name: a", "name: a, uid: x", 1)
	for _, c := range []struct {
		why, file, flag, out, says string
		status                     int
		tried                      []string
	}{
		{"a mistake that the command finds", document("ClusterRole", "") + "---\n" + mistaken, "", "",
			"a.yaml:9: data.spec.manifest[1].metadata.uid: Forbidden: an Application sets only the metadata name, namespace, labels and annotations: leave it out\n" +
				"error: a.yaml: the Application web would be refused: mend this mistake\n", 2, nil},
		{"in an object that cannot belong to an Application", secret, "", secret, "", 0, nil},
		{"a warning", document("ConfigMap", "dta: {}\n") + "---\n" + document("ClusterRole", ""), "", document("ClusterRole", ""),
			`a.yaml:4: warning: data.spec.manifest[0]: unknown field "dta"` + "\n", 0, []string{"web ConfigMap ClusterRole", "web ConfigMap"}},
		{"the webhook is not asked", document("ClusterRole", ""), "--dry-run=client", "",
			"error: --dry-run=client: the webhook is not asked, and only the webhook knows which kinds have no namespace: " +
				"leave it out, because --only-unsupported creates nothing\n", 2, nil},
	} {
		w := &webhook{refused: []string{"ClusterRole"}}
		arguments := append([]string{"create", "web", "-f", "a.yaml", "-n", "demo", "--only-unsupported", "--server", w.serve(t)}, strings.Fields(c.flag)...)
		out, says, status := clitest.Invoke(t, Commands, map[string]string{"a.yaml": c.file}, arguments...)
		check.Equal(t, c.why+": output", c.out, out)
		check.Equal(t, c.why+": errors", c.says, says)
		check.Equal(t, c.why+": status", c.status, status)
		check.Equal(t, c.why+": tried", c.tried, w.tried)
		check.Equal(t, c.why+": created", nil, w.created)
	}
}

// Each warning is printed once, with its place: that of the code of the webhook, that of the dry run,
// and that of the creation.
func TestCreateRepeatsNoWarning(t *testing.T) {
	known := `data.spec.manifest[0]: unknown field "dta"`
	w := &webhook{warnings: []string{known, "data.spec.manifest[1].data.a: the server says so", known[:30] + "...", "no place"}}
	files := map[string]string{"a.yaml": document("ConfigMap", "dta: {}\n") + "---\n" + document("ConfigMap", "data:\n  a: b\n")}
	files["a.yaml"] = strings.Replace(files["a.yaml"], "name: a", "name: b", 1)
	_, says, status := clitest.Invoke(t, Commands, files, "create", "web", "-f", "a.yaml", "-n", "demo", "--server", w.serve(t))
	check.Equal(t, "errors", `a.yaml:4: warning: data.spec.manifest[0]: unknown field "dta"
a.yaml:10: warning: data.spec.manifest[1].data.a: the server says so
a.yaml: warning: no place
`, says)
	check.Equal(t, "status", 0, status)
	check.Equal(t, "created", []string{"web ConfigMap ConfigMap"}, w.created)
}

func TestCreateOfflineAsksNoServer(t *testing.T) {
	w := &webhook{exists: true}
	url := w.serve(t)
	files := map[string]string{"a.yaml": document("ConfigMap", ""), "schema.yaml": document("ConfigMap", "data: {a: null}\n")}
	out, says, status := clitest.Invoke(t, Commands, files, "create", "web", "-f", "a.yaml", "--server", url, "-n", "demo", "--dry-run=client", "-o", "yaml",
		"--observe", "schema.yaml", "--cluster=east", "--mode=observe")
	clitest.Golden(t, "create.yaml", out)
	check.Equal(t, "errors", "", says)
	check.Equal(t, "status", 0, status)
	check.Equal(t, "tried", nil, w.tried)

	_, says, status = clitest.Invoke(t, Commands, files, "create", "web", "-f", "a.yaml", "--server", url, "-n", "demo", "--skip-unsupported")
	check.Equal(t, "errors", "error: the ConfigMap web exists in namespace demo: choose another name, or change it by the output of --dry-run=client -o yaml\n", says)
	check.Equal(t, "status", 2, status)
	check.Equal(t, "created", nil, w.created)
}

func TestCreateSplitsWhatIsTooMuch(t *testing.T) {
	var all []string
	for i := range 301 {
		all = append(all, strings.Replace(document("ConfigMap", ""), "name: a", fmt.Sprintf("name: a%d", i), 1))
	}
	files := map[string]string{"a.yaml": strings.Join(all, "---\n"), "schema.yaml": document("ConfigMap", "data: {a: null}\n")}
	out, says, status := clitest.Invoke(t, Commands, files, "create", "web", "-f", "a.yaml", "-n", "demo", "--dry-run=client")
	check.Equal(t, "output", "application demo/web-1 created, with 300 objects (dry run)\napplication demo/web-2 created, with 1 object (dry run)\n", out)
	check.Equal(t, "errors", "An Application has at most 300 objects and 4 MiB. The objects are split in the order of the input:\n", says)
	check.Equal(t, "status", 0, status)
	_, says, status = clitest.Invoke(t, Commands, files, "create", "web", "-f", "a.yaml", "-n", "demo", "--dry-run=client", "--observe=schema.yaml")
	check.Equal(t, "errors", "error: the objects need 2 Applications, and the observer schemas of schema.yaml are for one: create the Applications one by one\n", says)
	check.Equal(t, "status", 2, status)
}

func TestCreateNamesTheSourcesOfValues(t *testing.T) {
	files := map[string]string{"a.yaml": document("Secret", "") + "---\n" + document("ConfigMap", "")}
	out, says, status := clitest.Invoke(t, Commands, files, "create", "web", "-f", "a.yaml", "--values-from", "a=one,a=two", "--dry-run=client", "-o", "yaml")
	if status != 0 || !strings.Contains(out, "krake.dev/values-from: a=one,a=two\n") {
		t.Errorf("got %d %q %q", status, out, says)
	}
}

// As in kubectl, objects decide on the namespace if the flag does not.
func TestCreateTakesTheNamespaceOfItsObjects(t *testing.T) {
	in := func(namespace string) string {
		return strings.Replace(document("ConfigMap", ""), "name: a", "name: a"+namespace+", namespace: "+namespace, 1)
	}
	for _, c := range []struct{ files, flag, out, says string }{
		{in("shop") + "---\n" + document("ConfigMap", ""), "", "application shop/web created, with 2 objects (dry run)\n", ""},
		{document("ConfigMap", ""), "", "application default/web created, with 1 object (dry run)\n", ""},
		{in("shop"), "--namespace=demo", "application demo/web created, with 1 object (dry run)\n", ""},
		{in("shop") + "---\n" + in("other"), "", "", "error: a.yaml:5: it is for namespace other, and an object before it for namespace shop: " +
			"create an Application for each namespace, and name the namespace by -n\n"},
	} {
		arguments := []string{"create", "web", "-f", "a.yaml", "--dry-run=client"}
		if c.flag != "" {
			arguments = append(arguments, c.flag)
		}
		out, says, _ := clitest.Invoke(t, Commands, map[string]string{"a.yaml": c.files}, arguments...)
		check.Equal(t, "output", c.out, out)
		check.Equal(t, "errors", c.says, says)
	}
}

func TestCreateRefusesWhatItCannotRead(t *testing.T) {
	files := map[string]string{"a.yaml": document("ConfigMap", ""), "bad.yaml": "a: [", "secret.yaml": document("Secret", "data: {a: Yg==}\n")}
	for _, c := range []struct{ arguments, want string }{
		{"", "there are no manifests: name files or folders by -f, or a kustomization by -k"},
		{"-f bad.yaml", "bad.yaml:1: parse YAML"},
		{"-f none.yaml", "none.yaml: no such file"},
		{"-k .", "build the kustomization .: "},
		{"-f a.yaml --observe=some", "--observe is declared, minimal, or a file with observer schemas: "},
		{"-f a.yaml --dry-run=some", `--dry-run: "some" has to be one of none, client, server`},
		{"-f a.yaml --mode=some --dry-run=client", "metadata.annotations[krake.dev/mode]"},
		{"-f a.yaml --values-from a", "--values-from: it has to be SECRET=SOURCE"},
		{"-f a.yaml --values-from a=b", "--values-from a=b: a.yaml: there is no Secret a in it"},
		{"-f secret.yaml --skip-unsupported --dry-run=client", "secret.yaml: no object in it can belong to an Application: create them by kubectl apply"},
	} {
		out, says, status := clitest.Invoke(t, Commands, files, append([]string{"create", "web"}, strings.Fields(c.arguments)...)...)
		if out != "" || status != 2 || !strings.Contains(says, c.want) {
			t.Errorf("%s: want %q, got %d %q %q", c.arguments, c.want, status, out, says)
		}
	}
}
