package create

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
)

func newAccountCommand(e *env.Environment) *cobra.Command {
	a := accountCreation{Environment: e}
	command := &cobra.Command{
		Use:   "account [NAME] --grant GRANT",
		Short: "Create the service account that writes the objects of Applications, with its namespace and its rights",
		Long: `Create the service account that writes the objects of the Applications of a namespace, its
namespace, and a binding that grants it rights. The account is krake-deployer, unless you name
another one. The rights are:

  view, edit, admin   those of this ClusterRole, in the namespace
  cluster-admin       all rights, in all namespaces
  FILE                a file with Roles, for the namespace of each, or ClusterRoles, for all namespaces

The command creates what is missing, and repeats without a change. It takes no right away: rights
that the account has already stay. With --dry-run=client -o yaml it prints the objects only.`,
		Example: `  # An account that may write what edit allows in namespace shop
  kubectl krake account --namespace shop --grant edit

  # The objects as YAML, for Git
  kubectl krake account --namespace shop --grant edit --dry-run=client -o yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			a.name = application.DefaultServiceAccount
			if len(arguments) == 1 {
				a.name = arguments[0]
			}
			return a.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&a.grant, "grant", "", "rights: view, edit, admin, cluster-admin, or a file with Roles and ClusterRoles, - for the standard input")
	env.Must(command.MarkFlagRequired("grant"))
	a.dryRun.AddTo(command, "nothing is sent")
	a.output.AddTo(command, env.AsMessage, env.AsYAML, env.AsJSON)
	return command
}

// accountCreation is a run of the command.
type accountCreation struct {
	*env.Environment

	name, grant string
	dryRun      env.DryRun
	output      env.Output
}

func (a *accountCreation) run(ctx context.Context) error {
	if err := a.dryRun.Check(); err != nil {
		return err
	}
	namespace, _, err := a.Hub.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: a.name}
	granted, grants, err := a.bindings(account)
	if err != nil {
		return err
	}
	wanted := append([]runtime.Object{
		&corev1.Namespace{TypeMeta: typeOf(corev1.SchemeGroupVersion, "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{TypeMeta: typeOf(corev1.SchemeGroupVersion, "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.name}},
	}, granted...)
	objects := make([]*unstructured.Unstructured, 0, len(wanted))
	for _, object := range wanted {
		fields, err := fieldsOf(object)
		if err != nil {
			return err
		}
		objects = append(objects, fields)
	}
	if a.dryRun != env.DryRunClient {
		if err := a.apply(ctx, objects); err != nil {
			return err
		}
	}
	return a.print(account, objects, grants)
}

// fieldsOf returns what is set in an object.
func fieldsOf(object runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	for _, path := range [][]string{{"metadata", "creationTimestamp"}, {"spec"}, {"status"}} {
		unstructured.RemoveNestedField(fields, path...)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

func typeOf(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}

// bindings returns the objects that grant the rights, and a line for each grant.
func (a *accountCreation) bindings(account rbacv1.Subject) (objects []runtime.Object, grants []string, err error) {
	switch a.grant {
	case "view", "edit", "admin":
		grants = []string{fmt.Sprintf("what the ClusterRole %s allows, in namespace %s", a.grant, account.Namespace)}
		return []runtime.Object{a.roleBinding(account, account.Namespace, "ClusterRole", a.grant)}, grants, nil
	case "cluster-admin":
		fmt.Fprintln(a.ErrOut, "Warning: cluster-admin: all that can write as this account can change every object of the cluster, the policies and rights of Krake Observer included")
		return []runtime.Object{a.clusterRoleBinding(account, a.grant)}, []string{"everything, in all namespaces"}, nil
	}
	read, err := compose.Read(a.In, []string{a.grant}, false)
	if err != nil {
		return nil, nil, fmt.Errorf("--grant is view, edit, admin, cluster-admin, or a file with Roles and ClusterRoles: %w", err)
	}
	for _, object := range read {
		made, grant, err := a.granted(account, object)
		if err != nil {
			return nil, nil, err
		}
		objects, grants = append(objects, made...), append(grants, grant)
	}
	if len(objects) == 0 {
		return nil, nil, fmt.Errorf("%s: there is no Role and no ClusterRole in it", a.grant)
	}
	return objects, grants, nil
}

// granted returns a role of a file, and its binding.
func (a *accountCreation) granted(account rbacv1.Subject, object compose.Object) (objects []runtime.Object, grant string, err error) {
	switch object.GroupVersionKind() {
	case rbacv1.SchemeGroupVersion.WithKind("Role"):
		role := new(rbacv1.Role)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Value, role, true); err != nil {
			return nil, "", fmt.Errorf("%s: %w", object.Place(), err)
		}
		if role.Namespace == "" {
			role.Namespace = account.Namespace
		}
		grant = fmt.Sprintf("in namespace %s: %s", role.Namespace, texts(role.Rules))
		return []runtime.Object{role, a.roleBinding(account, role.Namespace, "Role", role.Name)}, grant, nil
	case rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):
		role := new(rbacv1.ClusterRole)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Value, role, true); err != nil {
			return nil, "", fmt.Errorf("%s: %w", object.Place(), err)
		}
		return []runtime.Object{role, a.clusterRoleBinding(account, role.Name)}, "in all namespaces: " + texts(role.Rules), nil
	}
	return nil, "", fmt.Errorf("%s: %s %s grants nothing: name a file with Roles and ClusterRoles only", object.Place(), object.Kind, object.Name)
}

// texts says what rules allow.
func texts(rules []rbacv1.PolicyRule) string {
	var all []string
	for _, rule := range rules {
		var on []string
		for _, resource := range rule.Resources {
			for _, group := range rule.APIGroups {
				on = append(on, schema.GroupResource{Group: group, Resource: resource}.String())
			}
		}
		on = append(on, rule.NonResourceURLs...)
		text := strings.Join(rule.Verbs, ", ") + " " + strings.Join(on, ", ")
		if len(rule.ResourceNames) > 0 {
			text += " called " + strings.Join(rule.ResourceNames, ", ")
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// roleBinding binds a role in a namespace. Its name has the role's, because the role of a binding cannot be changed.
func (a *accountCreation) roleBinding(account rbacv1.Subject, namespace, kind, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeOf(rbacv1.SchemeGroupVersion, "RoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account.Name + "-" + role},
		Subjects:   []rbacv1.Subject{account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}
}

func (a *accountCreation) clusterRoleBinding(account rbacv1.Subject, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   typeOf(rbacv1.SchemeGroupVersion, "ClusterRoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: account.Namespace + "-" + account.Name + "-" + role},
		Subjects:   []rbacv1.Subject{account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

// apply creates the namespace if it is missing, and applies the other objects. It forces nothing: a role that another client
// manages is an error.
func (a *accountCreation) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	cluster, err := a.ObjectsOf(application.LocalCluster)
	if err != nil {
		return err
	}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := cluster.Kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return err
		}
		client := cluster.At(mapping, object.GetNamespace())
		if gvk == corev1.SchemeGroupVersion.WithKind("Namespace") {
			err = a.create(ctx, client, object)
		} else {
			_, err = client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: env.FieldManager, DryRun: a.dryRun.OfRequest()})
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", gvk.Kind, object.GetName(), err)
		}
	}
	return nil
}

// create creates an object, unless there is one.
func (a *accountCreation) create(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	_, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: env.FieldManager, DryRun: a.dryRun.OfRequest()})
	}
	return err
}

func (a *accountCreation) print(account rbacv1.Subject, objects []*unstructured.Unstructured, grants []string) error {
	if a.output.IsDocument() {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, object := range objects {
			list.Items = append(list.Items, *object)
		}
		return env.PrintDocument(a.Out, a.output.Value, list.UnstructuredContent())
	}
	for _, grant := range grants {
		if _, err := fmt.Fprintln(a.Out, env.OneLine(fmt.Sprintf("serviceaccount %s/%s: %s%s", account.Namespace, account.Name, grant, a.dryRun.Suffix()))); err != nil {
			return err
		}
	}
	return nil
}
