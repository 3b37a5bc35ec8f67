package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	kinds "github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// subject is one object, and its Application, which has no other objects unless it is that of an installation.
type subject struct {
	app kit.App
	// object is the manifest, in the namespace of the object, and manifest is that of the Application.
	object   *unstructured.Unstructured
	manifest string
	resource string
	client   dynamic.ResourceInterface
	// observed is the observer schema. isDefault reports that the Application has none.
	observed  schema.Schema
	isDefault bool
	// holds says why the object must not be deleted, empty if it may be.
	holds string
	// types are those of a kind that is not built in, nil for other kinds.
	types *apitypes.Types
	// drifts counts the changes, and last is the object after the last one; nil if that is not known.
	drifts int
	last   *unstructured.Unstructured
}

func (s *subject) String() string {
	if s.isDefault {
		return yamlOf(s.object.Object)
	}
	return yamlOf(s.object.Object) + "with the observer schema\n" + yamlOf(s.observed.Document())
}

// newSubject returns an object that does not exist yet, in a namespace if its kind has one.
func newSubject(t *testing.T, namespace, app string, object *unstructured.Unstructured) (*subject, error) {
	t.Helper()
	s := &subject{app: hub.App(namespace, app), object: object, isDefault: true}
	var err error
	if s.resource, s.client, err = hub.Locate(object, namespace); err != nil {
		return nil, err
	}
	s.manifest = yamlOf(object.Object)
	s.observed, err = schema.Default(object.Object)
	s.observed, _ = s.observed.WithoutServerOwned()
	kit.EventuallyNil(t, func() (err error) { // a new kind is served before it is described
		s.types, err = kinds.ReadTypes(hub.Discovery().OpenAPIV3(), s.observed.ID())
		return err
	})
	return s, err
}

// observe sets a random observer schema, which is a part of the default one.
func (s *subject) observe(t *testing.T, random *rand.Rand) {
	t.Helper()
	document := thin(random, s.observed.Document(), 0)
	resources, schemas := []any{s.object.Object}, []any{document}
	set, findings := schema.Mangle(resources, schemas)
	if len(findings.Errors()) > 0 {
		t.Logf("%s keeps the default schema: %v", s.object.GetName(), findings.Errors())
		return
	}
	parsed, err := set.Of([]map[string]any{s.object.Object})
	kit.Must(t, err)
	s.observed, s.isDefault = parsed[0], false
}

// spec returns the texts of the Application, which differ in each round.
func (s *subject) spec(t *testing.T, round int) *corev1.ConfigMap {
	t.Helper()
	spec := &corev1.ConfigMap{Data: map[string]string{application.ManifestKey: fmt.Sprintf("# %d\n%s", round, s.manifest)}}
	if !s.isDefault {
		spec.Data[application.ObserverSchemaKey] = yamlOf(s.observed.Document())
	}
	kit.Must(t, application.CompressManifest(spec))
	return spec
}

// allGoes has the definitions of an Application deleted with it, so that other tests can create them.
var allGoes = kit.Annotation("deletion-policy", string(application.Delete))

// create creates the Application.
func (s *subject) create(t *testing.T) {
	t.Helper()
	app := kit.Application(s.app.Namespace, s.app.Name, "", allGoes)
	spec := s.spec(t, 0)
	app.Data, app.BinaryData = spec.Data, spec.BinaryData
	_, err := hub.CoreV1().ConfigMaps(app.Namespace).Create(t.Context(), app, metav1.CreateOptions{})
	kit.Must(t, err)
}

// renew writes a new spec with the same content.
func (s *subject) renew(t *testing.T) {
	t.Helper()
	s.app.Patch(t, string(kit.JSON(t, s.spec(t, s.drifts))))
	if complaint := s.settled(t); complaint != "" {
		t.Error(complaint)
	}
}

// get reads the object; nil if it does not exist.
func (s *subject) get(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	live, err := s.client.Get(t.Context(), s.object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(t, err)
	return live
}

// expected returns the object as its agent computes it.
func (s *subject) expected(t *testing.T, app *application.Application) plan.Expected {
	t.Helper()
	expected, err := plan.Expect(app, func(id manifest.ID) *apitypes.Types {
		if s.is(id) {
			return s.types
		}
		return nil
	})
	kit.Must(t, err)
	return expected[slices.IndexFunc(expected, func(e plan.Expected) bool { return s.is(e.ID) })]
}

// is reports whether an identity in a manifest is that of the object. A manifest may leave out the namespace, and may
// have one for a kind that has none.
func (s *subject) is(id manifest.ID) bool {
	own := s.observed.ID()
	if id.Namespace == "" || own.Namespace == "" {
		id.Namespace = own.Namespace
	}
	return id == own
}

// applied applies the observed part of the manifest on the server's side, with force, as a dry run. It
// returns what that changes in the live object, or else what drift the agent sees there.
func (s *subject) applied(t *testing.T) (live *unstructured.Unstructured, complaint string, err error) {
	t.Helper()
	body := s.object.DeepCopy()
	if !s.isDefault {
		part, _ := observedPart(s.observed.Document(), s.types.Of(s.observed.ID()), body.Object)
		body.Object, _ = part.(map[string]any)
		body.SetNamespace(s.object.GetNamespace())
	}
	applied, err := kit.ServerSideApply(t.Context(), s.client, body)
	lacksFields := !s.isDefault && apierrors.IsInvalid(err) // a part of a manifest cannot always be applied
	if live = s.get(t); err != nil && !lacksFields {
		return live, "", err
	}
	if live == nil || live.GetDeletionTimestamp() != nil {
		return live, "it does not exist", nil
	}
	if !lacksFields {
		complaint = kit.Difference(live, applied)
	}
	if complaint == "" { // an apply keeps elements that another client has added to a list
		expected := s.expected(t, s.app.Read(t))
		if drift := expected.Schema.Compare(expected.Desired, live.Object).Drift(); len(drift) > 0 {
			return live, fmt.Sprintf("%+v", drift), err // what refuses the apply may refuse the repair as well
		}
	}
	return live, complaint, nil
}

// threeWay returns what kubectl apply on the client's side would change.
func (s *subject) threeWay(t *testing.T, live *unstructured.Unstructured) (diff string, err error) {
	t.Helper()
	if !s.isDefault {
		return "", nil // it knows only whole manifests
	}
	return kit.ClientSideApply(t.Context(), s.client, s.object, s.object, live)
}

// unrepaired returns a complaint about a difference that the status does not name.
func (s *subject) unrepaired(t *testing.T, app *application.Application, live *unstructured.Unstructured) (complaint string) {
	t.Helper()
	if live == nil {
		return "it does not exist"
	}
	var fields []string
	for _, object := range app.Status.Objects {
		fields = append(fields, object.Fields...)
	}
	expected := s.expected(t, app)
	for _, difference := range expected.Schema.Compare(expected.Desired, live.Object).Drift().Details() {
		if path := difference.Path.String(); !slices.Contains(fields, path) {
			return path + " is not repaired"
		}
	}
	return ""
}

// isRepairRefused reports whether the API server refuses the repair of the observed part. Of a custom schema, an
// apply does not show that: it leaves out lists, and an observed part may lack fields that its object requires.
func (s *subject) isRepairRefused(t *testing.T, app *application.Application, live *unstructured.Unstructured) bool {
	t.Helper()
	if live == nil {
		return false
	}
	expected := s.expected(t, app)
	patch := kit.JSON(t, expected.Schema.Compare(expected.Desired, live.Object).Drift().Patch())
	_, err := s.client.Patch(t.Context(), s.object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "krake-observer", DryRun: []string{metav1.DryRunAll}})
	return isRefused(err)
}

// diff runs kubectl krake diff.
func (s *subject) diff(t *testing.T) (printed string) {
	t.Helper()
	program := exec.CommandContext(t.Context(), filepath.Join(hub.Dir(), "installation", "kubectl-krake"),
		"--kubeconfig", hub.Kubeconfig(), "-n", s.app.Namespace, "diff", s.app.Name)
	text, err := program.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Errorf("kubectl krake diff: %v: %s", err, text)
	}
	return string(text)
}

// reset restores the object as it was, and waits until the agent has nothing to do.
func (s *subject) reset(t *testing.T, before *unstructured.Unstructured) (complaint string) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := s.get(t)
		if live == nil {
			return nil
		}
		former := before.DeepCopy()
		former.SetResourceVersion(live.GetResourceVersion())
		former.SetUID(live.GetUID())
		_, err := s.client.Update(t.Context(), former, metav1.UpdateOptions{FieldManager: "reset"})
		return err
	})
	if err != nil {
		return "\nreset: " + err.Error()
	}
	s.renew(t)
	return ""
}
