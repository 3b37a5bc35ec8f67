package enrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/application"
)

const fieldManager = "kubectl-krake"

// hub is a connection to the hub with the rights of its administrator.
type hub struct {
	config   *rest.Config
	core     coreclient.CoreV1Interface
	policies admissionclient.ValidatingAdmissionPolicyBindingsGetter
	leases   coordinationclient.LeasesGetter
	dynamic  dynamic.Interface
	metadata metadata.Interface
	say      func(format string, arguments ...any)
}

func open(configure func() (*rest.Config, error), say func(string, ...any)) (*hub, error) {
	config, err := configure()
	if err != nil {
		return nil, fmt.Errorf("configure the connection to the hub: %w", err)
	}
	h := &hub{config: config, say: say}
	var failures [5]error
	h.core, failures[0] = coreclient.NewForConfig(config)
	h.policies, failures[1] = admissionclient.NewForConfig(config)
	h.leases, failures[2] = coordinationclient.NewForConfig(config)
	h.dynamic, failures[3] = dynamic.NewForConfig(config)
	h.metadata, failures[4] = metadata.NewForConfig(config)
	if err := errors.Join(failures[:]...); err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return h, nil
}

func (h *hub) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if _, err := h.resource(object).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("apply %s: %w", describe(object), err)
		}
		h.say("%s serverside-applied\n", describe(object))
	}
	return nil
}

// resource returns the client for an object. It derives the resource from the kind: those of an
// enrolment have regular plurals.
func (h *hub) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return h.dynamic.Resource(resource).Namespace(object.GetNamespace())
}

// prune deletes the objects that were made for the cluster, except those to keep. It returns
// their number.
func (h *hub) prune(ctx context.Context, cluster string, keep []*unstructured.Unstructured) (deleted int, err error) {
	for _, kind := range []schema.GroupVersionResource{ // those of an enrolment; the Secret that the token is bound to goes first
		corev1.SchemeGroupVersion.WithResource("secrets"),
		corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
		rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
		rbacv1.SchemeGroupVersion.WithResource("roles"),
		rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	} {
		list, err := h.dynamic.Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: application.EnrolmentLabel + "=" + cluster})
		if err != nil {
			return deleted, fmt.Errorf("list %s of cluster %s: %w", kind.Resource, cluster, err)
		}
		for _, object := range list.Items {
			made, err := everything(cluster, object.GetNamespace())
			if err != nil {
				return deleted, err
			}
			if !isAmong(made, &object) || isAmong(keep, &object) {
				continue
			}
			if err := h.delete(ctx, &object); err != nil {
				return deleted, err
			}
			deleted++
			h.say("%s deleted\n", describe(&object))
		}
	}
	return deleted, nil
}

// delete deletes the object that was read, and not another one of its name.
func (h *hub) delete(ctx context.Context, object *unstructured.Unstructured) error {
	err := h.resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", describe(object), err)
	}
	return nil
}

// everything returns the objects of an enrolment. The label alone is no proof: a user who may
// label an object of another name may not be allowed to delete it.
func everything(cluster, namespace string) ([]*unstructured.Unstructured, error) {
	identity, err := read("identity.yaml", cluster, "")
	if err != nil {
		return nil, err
	}
	rights, err := rightsOf(cluster, namespace, true)
	return slices.Concat(identity, rights), err
}

func rightsOf(cluster, namespace string, withHooks bool) ([]*unstructured.Unstructured, error) {
	rights, err := read("rights.yaml", cluster, namespace)
	if err != nil || !withHooks {
		return rights, err
	}
	hooks, err := read("hooks.yaml", cluster, namespace)
	return slices.Concat(rights, hooks), err
}

func isAmong(objects []*unstructured.Unstructured, one *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return describe(o) == describe(one) })
}

// read returns the objects of a file of manifests/enrolment, for a cluster and a namespace of
// the hub.
func read(file, cluster, namespace string) ([]*unstructured.Unstructured, error) {
	text, err := manifests.Files.ReadFile("enrolment/" + file)
	if err != nil {
		return nil, err
	}
	named := strings.NewReplacer(manifests.ClusterName, cluster, manifests.HubNamespace, namespace).Replace(string(text))
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(named, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		ours := labels.Set{application.EnrolmentLabel: cluster, "app.kubernetes.io/part-of": "krake-observer"}
		object.SetLabels(labels.Merge(object.GetLabels(), ours))
		objects = append(objects, object)
	}
	return objects, nil
}

// describe names an object as kubectl does, and where it is.
func describe(object *unstructured.Unstructured) string {
	name := strings.ToLower(object.GroupVersionKind().GroupKind().String()) + "/" + object.GetName()
	if object.GetNamespace() != "" {
		name += " in namespace " + object.GetNamespace()
	}
	return name
}
