package admission

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/pkg/application"
	objects "github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// without is the error of a request that was accepted, and of which the result says that it is not carried out.
func without(result string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("without effect: "+result))
}

// carriedOut is the error of an Application with these objects: its condition, if its agent does not carry it out.
func carriedOut(t *testing.T, as user, app *corev1.ConfigMap) error {
	t.Helper()
	if err := create(t, as, app); err != nil {
		return err
	}
	kit.EventuallyTrue(t, "there is no condition", func() bool {
		return hub.App(app.Namespace, app.Name).Condition(t, application.ReconciledCondition).Status != ""
	})
	if hub.App(app.Namespace, app.Name).Condition(t, application.ReconciledCondition).Status == metav1.ConditionTrue {
		return nil
	}
	return without(get(t, app.Namespace, app.Name).Data[application.StatusKey])
}

// Attacks of a user with all rights on ConfigMaps and no other, line by line as docs/attacks.md has them.
func TestAttacksOfAUserWithConfigMaps(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	mustRunLeaving(t, namespace)
	edit := func(name, body string) func() error {
		return func() error { return patch(t, low, namespace, name, body) }
	}
	annotate := func(name, annotation, value string) func() error {
		return edit(name, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, annotation, value))
	}
	config := kinds()[0].object("", "kube-root-ca.crt", "1")
	kit.Attacks(t, "ConfigMaps", []kit.Attempt{
		{What: "leaves an Application no room for its status", Can: true, Try: func() error {
			used := 0
			for key, value := range get(t, namespace, "web").Data {
				used += len(key) + len(value)
			}
			err := patch(t, low, namespace, "web", fmt.Sprintf(`{"data": {"notes": %q}}`, strings.Repeat("x", 1<<20-used-100)))
			mustHeal(t, namespace, "web")
			return errors.Join(err, patch(t, low, namespace, "web", `{"data": {"notes": null}}`))
		}},
		{What: "forges our marks on a ConfigMap", Can: true, Try: func() error {
			marks := application.Marks(hub.App(namespace, "web").NamespacedName, get(t, namespace, "web").UID, objects.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "forged"})
			err := create(t, low, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forged", Labels: marks.Labels, Annotations: marks.Annotations}})
			mustHeal(t, namespace, "web")
			return err
		}},
		{What: "spells the annotation Krake.dev/application", Can: true, Try: func() error {
			app := newApplication(namespace, "capital")
			app.Annotations = map[string]string{"Krake.dev/application": "v1"}
			err := create(t, low, app)
			mustHeal(t, namespace, "web")
			if service(t, namespace, "capital") != nil {
				t.Error("it is carried out")
			}
			return err
		}},
		{What: "has the agent adopt kube-root-ca.crt", By: "kube-root-ca.crt", Try: func() error {
			return carriedOut(t, low, kit.Application(namespace, "roots", config, kit.Annotation("adopt", "true")))
		}},
		{What: "says that another user holds an Application", By: "krake.dev/held-by", Try: annotate("leaving", application.HeldByAnnotation, "anna")},
		{What: "has the guard refuse other users' changes", By: "that its user may not do", Try: annotate("web", application.GuardAnnotation, "deny")},
		{What: "has an Application deleted if its shutdown fails", By: "that its user may not do", Try: annotate("web", application.ShutdownStrategyAnnotation, "delete")},
		{What: "claims that a Habitat generated an Application", By: "that its user may not do", Try: annotate("web", application.GeneratedFromAnnotation, "Habitat/web")},
	})
}

// Attacks of a user with the role edit, line by line as docs/attacks.md has them.
func TestAttacksOfAUserWithEdit(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	local := user("system:serviceaccount:" + namespace + ":local")
	bind(t, local, namespace, "ClusterRole", "edit")
	kit.EventuallyTrue(t, "the API server does not know the binding", func() bool { return local.may(t, "patch", "configmaps", namespace) })
	drift := func(request, body string) func() error {
		return func() error {
			err := kit.Send(t, editor.client(t), "PATCH /api/v1/namespaces/"+namespace+"/services/web"+request, body)()
			hub.EventuallyField(t, "web", kit.Services, namespace, "web", "spec", "selector", "app")
			return err
		}
	}
	invalid := func(what, by string, app *corev1.ConfigMap) kit.Attempt {
		return kit.Attempt{What: what, Refusal: metav1.StatusReasonInvalid, By: by, Try: func() error { return create(t, editor, app) }}
	}
	config := func(data string) *corev1.ConfigMap {
		return withManifest(namespace, "new", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "+data+"}}")
	}
	archive := kit.Application(namespace, "new", "")
	archive.BinaryData = map[string][]byte{application.CSARKey: bomb(t)}
	kit.Attacks(t, "edit", []kit.Attempt{
		{What: "applies a Service under the agent's name", Can: true, Try: drift("?fieldManager=krake-agent&force=true",
			`{"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "other"}}}`)},
		{What: "holds a changed Service with control characters", Can: true, Try: drift("",
			`{"metadata": {"annotations": {"krake.dev/hold-until": "\u001b[2J2999-01-01T00:00:00Z"}}, "spec": {"selector": {"app": "other"}}}`)},
		{What: "makes a ServiceAccount local, and writes status", By: "without effect", Try: func() error {
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the agent may write its status in between
				before := get(t, namespace, "web")
				forged := fmt.Sprintf(`{"metadata": {"resourceVersion": %q}, "data": {"status": "{}"}}`, before.ResourceVersion)
				stored, err := local.client(t).CoreV1().ConfigMaps(namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(forged), metav1.PatchOptions{})
				if err == nil && stored.Data[application.StatusKey] == before.Data[application.StatusKey] {
					return without("the webhook keeps the status")
				}
				return err
			})
		}},
		{What: "takes a Service that a deleted Application left", By: "AlreadyExists", Try: func() error {
			again := kit.Application(namespace, "again", manifestOf("again"), kit.Annotation("deletion-policy", "orphan"))
			kit.Must(t, create(t, editor, again))
			eventuallyState(t, application.StateRunning, namespace, "again")
			kit.Must(t, editor.client(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "again", metav1.DeleteOptions{}))
			hub.EventuallyGone(t, kit.ConfigMaps, namespace, "again")
			return carriedOut(t, editor, newApplication(namespace, "again"))
		}},
		invalid("fetches the machine's credentials from 169.254.169.254", "nothing is fetched", kit.Application(namespace, "new", "", kit.Data(application.ToscaKey, "https://169.254.169.254/latest.yaml"))),
		invalid("sends YAML that grows by aliases", "alias", config("[&a [x, x], &b [*a, *a], &c [*b, *b]]")),
		invalid("sends YAML of great depth", "max depth", config(strings.Repeat("[", 20_000))),
		invalid("sends an archive of 100 MiB of zeros", "", archive),
		invalid("sends control characters", "control characters", config("\x1b[2J")),
		invalid("names a cluster like a shard of another one", "krake.dev/cluster", kit.Application(namespace, "new", manifest, kit.On("local.shard-1"))),
	})
}

// bomb returns an archive with a large file.
func bomb(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	file, err := archive.Create("template.yaml")
	kit.Must(t, err)
	for range 100 {
		kit.Must(t, kit.ErrorOf(file.Write(make([]byte, 1<<20))))
	}
	kit.Must(t, archive.Close())
	return text.Bytes()
}

// Attacks of a user with the role view, line by line as docs/attacks.md has them.
func TestAttacksOfAUserWithView(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	send := func(request, body string) func() error {
		verb, path, _ := strings.Cut(request, " ")
		return kit.Send(t, viewer.client(t), verb+" /api/v1/namespaces/"+namespace+"/"+path, body)
	}
	kit.Attacks(t, "view", []kit.Attempt{
		{What: "reads who changed an object, with the values", Can: true, Try: send("GET configmaps/web", "")},
		{What: "learns by a dry run what the agent may create", By: "cannot create", Try: send("POST configmaps?dryRun=All", string(kit.JSON(t, newApplication(namespace, "new"))))},
		{What: "ends a hold", By: "cannot patch", Try: send("PATCH configmaps/web", `{"metadata": {"annotations": {"krake.dev/hold-until": null}}}`)},
		{What: "creates a token of an Application's account", By: `"serviceaccounts/token"`, Try: send("POST serviceaccounts/default/token", `{}`)},
	})
}
