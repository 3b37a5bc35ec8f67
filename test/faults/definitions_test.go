package faults

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/test/kit"
)

// songsGroup is the group of the kinds that the tales define.
const songsGroup = "faults.krake-tests.example"

// definition is a kind that the tests define: a song, or a stage. A test that counts
// calls uses its own group. An agent reads the objects of a group again when any kind
// of it is defined.
type definition struct {
	group, kind, plural string
}

func (d definition) resource() gvr.GroupVersionResource {
	return gvr.GroupVersionResource{Group: d.group, Version: "v1", Resource: d.plural}
}

// object returns an object of the kind.
func (d definition) object(a *app, namespace string) object {
	metadata := object{"name": a.Name + "-" + d.plural}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return object{"apiVersion": d.group + "/v1", "kind": d.kind, "metadata": metadata, "spec": object{"title": "one"}}
}

// grant binds all agents to a role for the kind, as an administrator does.
func (d definition) grant(ctx context.Context) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "faults-" + d.plural, Labels: map[string]string{"krake.dev/aggregate-to-agent": "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{d.group}, Resources: []string{d.plural}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		}},
	}
	_, err := env.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	return err
}

// define creates the definition. The API server serves v1 and the further versions, and stores objects as the last one.
func (d definition) define(ctx context.Context, scope string, versions ...string) error {
	var all []any
	for _, version := range append([]string{"v1"}, versions...) {
		all = append(all, object{
			"name": version, "served": true, "storage": false,
			"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	all[len(all)-1].(object)["storage"] = true
	crd := &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": d.plural + "." + d.group},
		"spec": object{
			"group": d.group, "scope": scope, "names": object{"kind": d.kind, "plural": d.plural},
			"versions": all,
		},
	}}
	if _, err := env.Dynamic.Resource(kit.Definitions).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("define %s: %w", d.plural, err)
	}
	return nil
}

// undefine deletes the kind with all its objects.
func (d definition) undefine(ctx context.Context) error {
	if err := env.Dynamic.Resource(kit.Definitions).Delete(ctx, d.plural+"."+d.group, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("remove the definition of %s: %w", d.plural, err)
	}
	return nil
}

// undefined returns an error while the definition exists.
func (d definition) undefined(ctx context.Context) error {
	live, err := env.Find(ctx, kit.Definitions, "", d.plural+"."+d.group)
	if live != nil {
		return errors.New("the definition is still there")
	}
	return err
}

// present returns an error unless the Application's object of the kind exists.
func (d definition) present(ctx context.Context, a *app) error {
	_, err := env.Dynamic.Resource(d.resource()).Namespace(a.Namespace).Get(ctx, a.Name+"-"+d.plural, metav1.GetOptions{})
	return err
}
