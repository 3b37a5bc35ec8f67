package create

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// printMissingRights prints a ClusterRole with the rights on the kinds of the objects that the agent does not have. It
// is to be applied on the cluster of the objects.
func (c *creation) printMissingRights(ctx context.Context, objects []compose.Object) error {
	missing, err := c.missingRights(ctx, objects)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		fmt.Fprintln(c.ErrOut, "The agent has the rights on all kinds of these objects.")
		return nil
	}
	for _, rule := range missing {
		if resource := (schema.GroupResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}); resource == corev1.Resource("secrets") {
			fmt.Fprintln(c.ErrOut, "Warning: secrets: with these rights, the agent can read the values of all Secrets of the cluster")
		}
	}
	role := &rbacv1.ClusterRole{
		TypeMeta: typeOf(rbacv1.SchemeGroupVersion, "ClusterRole"),
		ObjectMeta: metav1.ObjectMeta{
			Name:   "krake-agent-" + c.name,
			Labels: map[string]string{application.AggregateLabel: "true"},
		},
		Rules: missing,
	}
	fields, err := fieldsOf(role)
	if err != nil {
		return err
	}
	format := env.AsYAML
	if c.output.IsDocument() {
		format = c.output.Value
	}
	return env.PrintDocument(c.Out, format, fields.Object)
}

// missingRights returns what the agent may not do with the kinds of the objects. In strict mode it reads, and writes as a
// service account.
func (c *creation) missingRights(ctx context.Context, objects []compose.Object) ([]rbacv1.PolicyRule, error) {
	cluster := cmp.Or(c.cluster, application.LocalCluster)
	target, err := c.ObjectsOf(cluster)
	if err != nil {
		return nil, err
	}
	asked := agentRights{target.Reviews, cluster}
	verbs, err := asked.verbs(ctx, c.namespace)
	if err != nil {
		return nil, err
	}
	filled, watched := []compose.Object{}, []compose.Object{}
	for _, object := range objects {
		if application.SourcesFor(c.values, object.ID) == nil {
			watched = append(watched, object)
		} else {
			filled = append(filled, object)
		}
	}
	kinds, err := resourcesOf(target, watched)
	if err != nil {
		return nil, err
	}
	rules, err := asked.missing(ctx, kinds, verbs)
	if err != nil || len(filled) == 0 || slices.Contains(kinds, corev1.Resource("secrets")) {
		return rules, err
	}
	// Secrets whose values have sources are read by name.
	byName := slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb == "list" || verb == "watch" })
	secrets, err := asked.missing(ctx, []schema.GroupResource{corev1.Resource("secrets")}, byName)
	return append(rules, secrets...), err
}

// resourcesOf returns the resources of the objects, sorted, each once. A kind that the cluster does not have is known if
// one of the objects defines it.
func resourcesOf(o env.Objects, objects []compose.Object) ([]schema.GroupResource, error) {
	defined := map[schema.GroupKind]schema.GroupResource{}
	for _, object := range objects {
		if !object.IsDefinition() {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Value, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Value, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(object.Value, "spec", "names", "plural")
		defined[schema.GroupKind{Group: group, Kind: kind}] = schema.GroupResource{Group: group, Resource: plural}
	}
	var resources []schema.GroupResource
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		resource, ok := defined[gvk.GroupKind()]
		if !ok {
			mapping, err := o.Kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: the cluster does not have this kind, and none of the objects defines it: %w", object.Place(), object.ID, err)
			}
			resource = mapping.Resource.GroupResource()
		}
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return slices.Compact(resources), nil
}

// agentRights asks what an agent may do.
type agentRights struct {
	reviews authorization.SubjectAccessReviewInterface
	// cluster is that of the agent.
	cluster string
}

func (a agentRights) may(ctx context.Context, do authorizationv1.ResourceAttributes) (bool, error) {
	review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               serviceaccount.MakeUsername(application.AgentsNamespace, a.cluster),
			Groups:             append(serviceaccount.MakeGroupNames(application.AgentsNamespace), user.AllAuthenticated),
			ResourceAttributes: &do,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask what the agent of cluster %s may do: %w", a.cluster, err)
	}
	return review.Status.Allowed, nil
}

// verbs returns what an agent does with the objects of Applications. In strict mode it may act as service accounts.
func (a agentRights) verbs(ctx context.Context, namespace string) ([]string, error) {
	strict, err := a.may(ctx, authorizationv1.ResourceAttributes{
		Verb: "impersonate:serviceaccount", Group: "authentication.k8s.io", Resource: "serviceaccounts", Namespace: namespace, Name: application.DefaultServiceAccount,
	})
	if err != nil {
		return nil, err
	}
	verbs := []string{"get", "list", "watch"}
	for _, verb := range []string{"create", "patch", "delete"} {
		if strict {
			verb = application.ActingAs + verb
		}
		verbs = append(verbs, verb)
	}
	return verbs, nil
}

// missing returns a rule for each resource of which the agent lacks a verb in any namespace.
func (a agentRights) missing(ctx context.Context, resources []schema.GroupResource, verbs []string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, resource := range resources {
		for _, verb := range verbs {
			allowed, err := a.may(ctx, authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: resource.Resource})
			if err != nil {
				return nil, err
			}
			if allowed {
				continue
			}
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs})
			break
		}
	}
	return rules, nil
}
