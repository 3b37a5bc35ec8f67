package faults

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/test/kit"
)

// songsGroup is the group of the kinds that the tales define.
const songsGroup = "faults.krake-tests.example"

// definition is a kind that a tale defines.
type definition struct {
	group, kind, plural string
}

func (d definition) resource() gvr.GroupVersionResource {
	return gvr.GroupVersionResource{Group: d.group, Version: "v1", Resource: d.plural}
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

// define creates the definition.
func (d definition) define(ctx context.Context) error {
	crd := &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": d.plural + "." + d.group},
		"spec": object{
			"group": d.group, "scope": "Namespaced", "names": object{"kind": d.kind, "plural": d.plural},
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
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
