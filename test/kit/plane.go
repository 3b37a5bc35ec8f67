package kit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// Resources that suites read and change.
var (
	ConfigMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	Secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	Deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	StatefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	Events       = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	Roles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	RoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	ClusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	Definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// Plane is a control plane with the clients of its administrator, which have no rate
// limit and show no warnings.
type Plane struct {
	*cluster.Cluster
	kubernetes.Interface

	Dynamic dynamic.Interface

	kinds meta.RESTMapper
}

// NewPlane makes the clients of a cluster.
func NewPlane(c *cluster.Cluster) (*Plane, error) {
	config := c.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // kubectl shows them in the tests about warnings
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery()))
	return &Plane{Cluster: c, Interface: typed, Dynamic: untyped, kinds: kinds}, err
}

// StartPlane starts a control plane on this machine, as [cluster.Start] does.
func StartPlane(ctx context.Context, options cluster.Options) (*Plane, error) {
	return planeOf(cluster.Start(ctx, options))
}

// OpenPlane opens the best cluster that is available, as [cluster.Open] does.
func OpenPlane(ctx context.Context, options cluster.Options) (*Plane, error) {
	return planeOf(cluster.Open(ctx, options))
}

func planeOf(c *cluster.Cluster, err error) (*Plane, error) {
	if err != nil {
		return nil, err
	}
	p, err := NewPlane(c)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return p, nil
}

// Stop stops the control plane. It does nothing to one that did not start, so that the error of the start is what is
// printed.
func (p *Plane) Stop() error {
	if p == nil {
		return nil
	}
	return p.Cluster.Stop()
}

// Mark returns the current end of the audit log. It skips the test if the cluster has
// none.
func (p *Plane) Mark(t testing.TB) Mark {
	t.Helper()
	mark, err := MarkAudit(p.Cluster)
	if errors.Is(err, ErrNoAuditLog) {
		t.Skip(err)
	}
	Must(t, err)
	return mark
}

// UniqueName returns a name that no other test has.
func UniqueName(prefix string) string {
	return fmt.Sprintf("%s-%09d", prefix, rand.IntN(1e9))
}

// NewNamespace creates a namespace whose name begins with the prefix. It deletes the
// namespace when the test is over, without waiting.
func (p *Plane) NewNamespace(t testing.TB, prefix string) string {
	t.Helper()
	name := UniqueName(prefix)
	p.CreateNamespace(t, name)
	t.Cleanup(func() {
		err := p.CoreV1().Namespaces().Delete(lasting(t), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return name
}

// NewNamespaceOfApps is [Plane.NewNamespace] for sequential tests: the Applications in
// it are gone before the next test begins.
func (p *Plane) NewNamespaceOfApps(t testing.TB, prefix string) string {
	t.Helper()
	name := p.NewNamespace(t, prefix)
	t.Cleanup(func() {
		apps, of := p.CoreV1().ConfigMaps(name), metav1.ListOptions{LabelSelector: application.ClusterLabel}
		Must(t, apps.DeleteCollection(lasting(t), metav1.DeleteOptions{}, of))
		Eventually(t, func() string {
			remaining, err := apps.List(lasting(t), of)
			if err == nil && len(remaining.Items) > 0 {
				return fmt.Sprintf("%d Applications are not deleted yet", len(remaining.Items))
			}
			return check.Message(err)
		})
	})
	return name
}

// Token makes a token of a service account for a day.
func (p *Plane) Token(t testing.TB, namespace, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 60 * 60)}}
	answer, err := p.CoreV1().ServiceAccounts(namespace).CreateToken(lasting(t), account, request, metav1.CreateOptions{})
	Must(t, err)
	return answer.Status.Token
}

// CreateNamespace creates a namespace that outlives the test.
func (p *Plane) CreateNamespace(t testing.TB, name string) {
	t.Helper()
	LookAtSources(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := p.CoreV1().Namespaces().Create(lasting(t), namespace, metav1.CreateOptions{})
	Must(t, err)
}

// Kubectl runs kubectl as the administrator and returns its stdout and stderr. It fails
// the test if kubectl fails.
func (p *Plane) Kubectl(t testing.TB, arguments ...string) string {
	t.Helper()
	return p.KubectlWith(t, "", arguments...)
}

// KubectlWith is [Plane.Kubectl] with an input.
func (p *Plane) KubectlWith(t testing.TB, input string, arguments ...string) string {
	t.Helper()
	text, err := TryKubectl(lasting(t), p.Cluster, input, arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return text
}

// Apply runs kubectl apply with these documents.
func (p *Plane) Apply(t testing.TB, documents string) string {
	t.Helper()
	return p.KubectlWith(t, documents, "apply", "-f", "-")
}

// TryKubectl runs kubectl as the administrator with an input, and returns its stdout
// and stderr.
func TryKubectl(ctx context.Context, on *cluster.Cluster, input string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, on.Kubectl(), append([]string{"--kubeconfig", on.Kubeconfig()}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	text, err := command.CombinedOutput()
	return string(text), err
}

// Find reads an object; nil if it does not exist.
func (p *Plane) Find(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := p.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // or the kind is not served
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	return object, nil
}

// Get is [Plane.Find] for a test.
func (p *Plane) Get(t testing.TB, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := p.Find(lasting(t), resource, namespace, name)
	Must(t, err)
	return object
}

// TryChange applies a merge patch as another client would: with its own field manager.
func (p *Plane) TryChange(ctx context.Context, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) error {
	_, err := p.Dynamic.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	if err != nil {
		return fmt.Errorf("change %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	return nil
}

// Change is [Plane.TryChange] for a test.
func (p *Plane) Change(t testing.TB, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
	t.Helper()
	Must(t, p.TryChange(lasting(t), resource, namespace, name, patch, subresources...))
}

// EventuallyField waits until a field of an object has a value, compared as text.
func (p *Plane) EventuallyField(t testing.TB, want any, resource schema.GroupVersionResource, namespace, name string, path ...any) {
	t.Helper()
	Eventually(t, func() string {
		got := Field(p.Get(t, resource, namespace, name), path...)
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return ""
		}
		return fmt.Sprintf("%v of %s %s is %v, want %v", path, resource.Resource, name, got, want)
	})
}

// EventuallyGone waits until an object is gone.
func (p *Plane) EventuallyGone(t testing.TB, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	Eventually(t, func() string {
		if p.Get(t, resource, namespace, name) == nil {
			return ""
		}
		return resource.Resource + " " + name + " is still there"
	})
}

// Field returns the value at a path of an object: names of fields, and indices of
// lists. It is nil if the path does not exist, and for a nil object.
func Field(object *unstructured.Unstructured, path ...any) any {
	if object == nil {
		return nil
	}
	return At(object.Object, path...)
}

// At returns the value at a path of field names and indices of lists; nil if the path
// does not exist.
func At(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}
