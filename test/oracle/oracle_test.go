package oracle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// excluded are kinds that are not created, with the reasons.
var excluded = map[string]string{
	"ValidatingWebhookConfiguration": "its webhooks do not run, and every write would fail",
	"MutatingWebhookConfiguration":   "its webhooks do not run, and every write would fail",
	"APIService":                     "its server does not run, and discovery would fail",
	"Namespace":                      "the namespace of the test has all objects",
	"Job":                            "its template cannot be changed back, and only the loop knows what to do then",
	"PersistentVolumeClaim":          "its spec cannot be changed",
}

// subject is one object of a manifest on the API server.
type subject struct {
	plan    plan.Object
	client  dynamic.ResourceInterface
	example map[string]any
}

type oracle struct {
	plane  *kit.Plane
	mapper meta.RESTMapper
	random *rand.Rand
}

func TestRepairsEndWhereApplyWould(t *testing.T) {
	wanted := number(t, "KRAKE_ORACLE_DRIFTS", 1500)
	if testing.Short() {
		wanted = number(t, "KRAKE_ORACLE_DRIFTS", 300)
	}
	seed := number(t, "KRAKE_ORACLE_SEED", int(time.Now().UnixNano()%1e6))
	plane, err := kit.StartPlane(t.Context(), cluster.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, plane.Stop()) })
	o := &oracle{
		plane: plane, random: rand.New(rand.NewPCG(uint64(max(seed, 0)), 0)),
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(plane.RESTConfig()))),
	}
	namespace := plane.NewNamespace(t, "oracle")
	subjects := o.create(t, namespace)
	t.Logf("KRAKE_ORACLE_SEED=%d: %d objects", seed, len(subjects))
	counts := map[string]int{}
	for counts["repaired"]+counts["no drift"] < wanted {
		s := subjects[o.random.IntN(len(subjects))]
		what, result, complaint := o.try(t.Context(), s)
		counts[result]++
		if complaint != "" {
			manifest, _ := json.Marshal(s.plan.Manifest())
			t.Errorf("%s of %s: %s\n%s\n%.3000s", what, s.plan.ID, result, complaint, manifest)
			if counts["diverged"] > 20 {
				break
			}
		}
	}
	t.Log(counts)
}

func number(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	value, err := strconv.Atoi(text)
	kit.Must(t, err)
	return value
}

// create creates the objects of all manifests, and plans them as the agent does.
func (o *oracle) create(t *testing.T, namespace string) []*subject {
	t.Helper()
	var subjects []*subject
	files, err := filepath.Glob("testdata/*.yaml")
	kit.Must(t, err)
	if folder := os.Getenv("KRAKE_INSTALLS"); folder != "" {
		more, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		kit.Must(t, err)
		files = append(files, more...)
	} else {
		t.Log("KRAKE_INSTALLS names no folder with manifests of public installations: only those in testdata are tried")
	}
	for _, file := range files {
		for _, resource := range resourcesIn(t, file) {
			s, err := o.subject(t.Context(), namespace, resource.(map[string]any))
			if err != nil {
				t.Logf("%s: %v", filepath.Base(file), err)
				continue
			}
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// resourcesIn returns the resources of a file. It leaves out documents that are too large for an
// Application.
func resourcesIn(t *testing.T, file string) (resources []any) {
	t.Helper()
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return resources
		}
		kit.Must(t, err)
		decoded, err := manifest.Decode(document)
		if err != nil {
			t.Logf("%s: %v", filepath.Base(file), err)
			continue
		}
		resources = append(resources, decoded...)
	}
}

var errExcluded = errors.New("not created")

func (o *oracle) subject(ctx context.Context, namespace string, resource map[string]any) (*subject, error) {
	object := &unstructured.Unstructured{Object: resource}
	if why := excluded[object.GetKind()]; why != "" {
		return nil, fmt.Errorf("%s %s: %w: %s", object.GetKind(), object.GetName(), errExcluded, why)
	}
	kind := object.GroupVersionKind()
	mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	s := &subject{client: o.plane.Dynamic.Resource(mapping.Resource)}
	object.SetNamespace("")
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(namespace)
		s.client = o.plane.Dynamic.Resource(mapping.Resource).Namespace(namespace)
	}
	text, err := json.Marshal(resource)
	if err != nil {
		return nil, err
	}
	app := &application.Application{
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: "oracle"}, UID: "1",
		Spec: application.Spec{Manifest: string(text)},
	}
	cached, err := (*plan.Cache)(nil).Of(app)
	if err != nil {
		return nil, err
	}
	drafts := cached.Drafts()
	drafts[0].Namespace = object.GetNamespace()
	drafts[0].Resource = mapping.Resource
	if err := cached.Complete(app, drafts); err != nil {
		return nil, err
	}
	s.plan = drafts[0]
	s.example = s.plan.Manifest()
	live, err := s.client.Create(ctx, &unstructured.Unstructured{Object: s.plan.Body()}, metav1.CreateOptions{FieldManager: "krake-observer"})
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return s, s.plan.Accept(live.Object, nil, nil)
}

// try changes an object, repairs it, and compares it with what an apply makes of it.
func (o *oracle) try(ctx context.Context, s *subject) (what, result, complaint string) {
	before, err := s.client.Get(ctx, s.plan.Name, metav1.GetOptions{})
	if err != nil {
		return "read", "no answer", err.Error()
	}
	changed := before.DeepCopy()
	what = o.drift(s, changed.Object)
	drifted, err := s.client.Update(ctx, changed, metav1.UpdateOptions{FieldManager: fmt.Sprint("editor-", o.random.IntN(3))})
	if err != nil {
		return what, "change refused", ""
	}
	final, patches, err := s.repair(ctx)
	if err != nil {
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return what, "repair refused", o.reset(ctx, s, before)
		}
		return what, "repair failed", err.Error()
	}
	if patches > 2 {
		return what, "diverged", fmt.Sprintf("%d patches", patches)
	}
	if complaint := o.compare(ctx, s, final); complaint != "" {
		complaint += "\nbefore the change, and after it:\n" + cmp.Diff(content(before), content(drifted))
		return what, "diverged", complaint + o.reset(ctx, s, before)
	}
	if complaint := touched(before, drifted, final); complaint != "" {
		return what, "diverged", complaint
	}
	if patches == 0 {
		return what, "no drift", ""
	}
	return what, "repaired", ""
}

// reset puts the object back as it was.
func (o *oracle) reset(ctx context.Context, s *subject, before *unstructured.Unstructured) (complaint string) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := s.client.Get(ctx, s.plan.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		former := before.DeepCopy()
		former.SetResourceVersion(live.GetResourceVersion())
		_, err = s.client.Update(ctx, former, metav1.UpdateOptions{FieldManager: "krake-observer"})
		return err
	})
	if err != nil {
		return "\nreset: " + err.Error()
	}
	return ""
}

// drift makes one random change in an object, of one value that the manifest has.
func (o *oracle) drift(s *subject, object map[string]any) (what string) {
	all := spots(s.example, nil)
	slices.SortFunc(all, func(a, b schema.Path) int { return strings.Compare(a.String(), b.String()) })
	ways := drifts()
	names := slices.Sorted(maps.Keys(ways))
	for range 1000 {
		path, name := all[o.random.IntN(len(all))], names[o.random.IntN(len(names))]
		value, ok := ways[name](o.random, runtime.DeepCopyJSONValue(schema.ValueAt(object, path)))
		if ok && set(object, path, value) {
			return name + " " + path.String()
		}
	}
	return "nothing"
}

// repair patches the object until no drift is left, and returns it with the number of patches.
func (s *subject) repair(ctx context.Context) (live *unstructured.Unstructured, patches int, err error) {
	for {
		if live, err = s.client.Get(ctx, s.plan.Name, metav1.GetOptions{}); err != nil {
			return nil, patches, err
		}
		found := s.plan.Marked.Compare(s.plan.MarkedDesired(), live.Object).Drift()
		patch := found.Patch()
		if len(patch) == 0 || patches > 2 {
			return live, patches, nil
		}
		text, err := json.Marshal(patch.Guard(live.GetResourceVersion()))
		if err != nil {
			return nil, patches, err
		}
		patches++
		after, err := s.client.Patch(ctx, s.plan.Name, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: "krake-observer"})
		if apierrors.IsConflict(err) {
			patches--
			continue
		}
		if err != nil {
			return nil, patches, err
		}
		if err := s.plan.Accept(after.Object, found, nil); err != nil {
			return nil, patches, err
		}
	}
}

// compare applies the manifest as a dry run, which must change nothing.
func (o *oracle) compare(ctx context.Context, s *subject, live *unstructured.Unstructured) (complaint string) {
	body := &unstructured.Unstructured{Object: s.plan.Body()}
	applied, err := s.client.Apply(ctx, s.plan.Name, body, metav1.ApplyOptions{FieldManager: "kubectl", Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "apply: " + err.Error()
	}
	if diff := cmp.Diff(content(live), content(applied)); diff != "" {
		return "an apply would change this: -live +applied\n" + diff
	}
	return ""
}

// content returns an object without what each write changes.
func content(object *unstructured.Unstructured) map[string]any {
	fields := object.DeepCopy().Object
	delete(fields, "status")
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(fields, "metadata", name)
	}
	unstructured.RemoveNestedField(fields, "metadata", "annotations", "deployment.kubernetes.io/revision")
	unstructured.RemoveNestedField(fields, "metadata", "annotations", "deprecated.daemonset.template.generation")
	return fields
}

// touched finds fields that the repair changed although the change had not touched them.
func touched(before, drifted, final *unstructured.Unstructured) (complaint string) {
	was, is := map[string]bool{}, map[string]bool{}
	paths(content(before), content(drifted), "", was)
	paths(content(before), content(final), "", is)
	for path := range is {
		reached := false
		for other := range was {
			reached = reached || strings.HasPrefix(path, other)
		}
		if !reached {
			return "the repair changed " + path
		}
	}
	return ""
}

// paths collects where two values differ. A list is one value.
func paths(a, b any, path string, into map[string]bool) {
	fields, ok := a.(map[string]any)
	others, okToo := b.(map[string]any)
	if !ok || !okToo {
		if !cmp.Equal(a, b) {
			into[path] = true
		}
		return
	}
	for name := range fields {
		paths(fields[name], others[name], path+"/"+name, into)
	}
	for name := range others {
		if _, both := fields[name]; !both {
			into[path+"/"+name] = true
		}
	}
}
