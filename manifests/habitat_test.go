package manifests

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// withHabitat are the installations that carry out Habitats.
var withHabitat = []string{"overlays/habitat", "made/habitat-namespaced", "made/strict-habitat"}

// isOfHabitat reports roles with rights that other roles may not have. Their rights are listed
// exactly.
func isOfHabitat(role string) bool {
	return slices.Contains([]string{"ClusterRole krake-habitat", "ClusterRole krake-habitat-crd", "ClusterRole krake-habitat-deployers", "ClusterRole krake-habitat-secrets"}, role)
}

const (
	reads   = "the caches have what concerns Habitats"
	asks    = "the webhook asks for it, of whoever has an Application write such an object: a policy keeps it from being used"
	metrics = "who reads the metrics is asked who he is, and whether he may"
)

// rightsOfHabitat are the rights of the controller, each with its reason.
var rightsOfHabitat = map[string]map[string]string{
	"ClusterRole krake-habitat": {
		"list habitats.habitat.sh": reads, "watch habitats.habitat.sh": reads,
		"patch habitats/status.habitat.sh":      "it writes the status, and nothing else of a Habitat",
		"update habitats/finalizers.habitat.sh": "asked for by an ownerReference with blockOwnerDeletion, where admission looks at that",

		"get configmaps": "an Application that has lost its label is in no cache", "list configmaps": reads, "watch configmaps": reads,
		"create configmaps": "Applications; the webhook asks for it, for the peer file", "patch configmaps": "Applications, and the address in the peer file",
		"delete configmaps":             asks,
		"delete applications.krake.dev": "asked for by the policies, of whoever gives an Application an owner",

		"get statefulsets.apps": "before Pods are deleted, it is read anew", "list statefulsets.apps": reads, "watch statefulsets.apps": reads,
		"create statefulsets.apps": asks, "patch statefulsets.apps": asks, "delete statefulsets.apps": asks,
		"create deployments.apps": asks, "patch deployments.apps": asks, "delete deployments.apps": asks,

		"list pods": reads, "watch pods": reads,
		"delete pods": "outdated Pods are deleted where a Habitat asks for OnDelete",

		"create events.events.k8s.io": "Events of Habitats", "patch events.events.k8s.io": "one that goes on is counted",
	},
	"ClusterRole krake-habitat-secrets": {"get secrets": "whether one is there, where it is bound"},
	"ClusterRole krake-habitat-crd": {
		"create customresourcedefinitions.apiextensions.k8s.io":                     "RBAC knows no names of what is created: a policy does",
		"get customresourcedefinitions.apiextensions.k8s.io habitats.habitat.sh":    "whether it is there, and ours",
		"update customresourcedefinitions.apiextensions.k8s.io habitats.habitat.sh": "that of an older version is brought to this one",
	},
	"ClusterRole krake-habitat-reviews": {
		"create subjectaccessreviews.authorization.k8s.io": metrics, "create tokenreviews.authentication.k8s.io": metrics,
	},
	"Role krake-habitat": {
		"create leases.coordination.k8s.io":            "RBAC knows no names of what is created",
		"get leases.coordination.k8s.io krake-habitat": "one of the replicas acts", "update leases.coordination.k8s.io krake-habitat": "one of the replicas acts",
	},
	"ClusterRole krake-habitat-deployers": {
		"impersonate serviceaccounts krake-deployer": "the webhook asks for it, of whoever has an Application carried out as this account",
	},
}

// rightsOfPeople are the rights of users, which are added to their existing roles.
var rightsOfPeople = map[string][]string{
	"ClusterRole krake-habitat-edit": {
		"create habitats.habitat.sh", "delete habitats.habitat.sh", "deletecollection habitats.habitat.sh", "get habitats.habitat.sh",
		"list habitats.habitat.sh", "patch habitats.habitat.sh", "update habitats.habitat.sh", "watch habitats.habitat.sh",
	},
	"ClusterRole krake-habitat-view": {"get habitats.habitat.sh", "list habitats.habitat.sh", "watch habitats.habitat.sh"},
}

// rightsOf returns each right of the roles with this prefix, sorted: "get pods", "get
// leases.coordination.k8s.io krake-habitat".
func rightsOf(t *testing.T, in installed, prefix string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, role := range roles(t, in) {
		if !strings.HasPrefix(role.Name, prefix) {
			continue
		}
		for _, rule := range role.rules {
			found[role.ref()] = append(found[role.ref()], rights(rule)...)
		}
		slices.Sort(found[role.ref()])
	}
	return found
}

func rights(rule rbacv1.PolicyRule) []string {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					right := verb + " " + resource
					if group != "" {
						right += "." + group
					}
					all = append(all, strings.TrimSpace(right+" "+name))
				}
			}
		}
	}
	return all
}

// The controller has exactly the rights with a reason. Both modes have the same rights, except
// for the kind's definition, which the installation of one mode contains.
func TestRightsOfHabitat(t *testing.T) {
	for _, in := range installations(t) {
		want := map[string][]string{}
		if slices.Contains(withHabitat, in.name) {
			maps.Copy(want, rightsOfPeople)
			for role, of := range rightsOfHabitat {
				want[role] = slices.Sorted(maps.Keys(of))
			}
		}
		if in.name == "made/habitat-namespaced" {
			delete(want, "ClusterRole krake-habitat-crd")
		}
		if in.name != "made/strict-habitat" {
			delete(want, "ClusterRole krake-habitat-deployers")
		}
		check.Equal(t, in.name+": rights", want, rightsOf(t, in, "krake-habitat"))
	}
}

// In cluster mode the controller has its rights everywhere. In namespaced mode it has them in
// the configured namespaces, and elsewhere only those to request reviews.
func TestWhereHabitatsAre(t *testing.T) {
	const reviews, own = "ClusterRole krake-habitat-reviews", "krake-system: Role krake-habitat"
	want := map[string][]string{
		"overlays/habitat":        {"ClusterRole krake-habitat", "ClusterRole krake-habitat-crd", reviews, own},
		"made/habitat-namespaced": {reviews, "demo: ClusterRole krake-habitat", "demo: ClusterRole krake-habitat-secrets", own},
		"made/strict-habitat": {
			"ClusterRole krake-habitat", "ClusterRole krake-habitat-crd", "ClusterRole krake-habitat-deployers", reviews, own,
		},
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "krake-habitat", Namespace: "krake-system"}
	for _, in := range installations(t) {
		var got []string
		for _, binding := range bindings(t, in) {
			if slices.Contains(binding.Subjects, subject) || strings.HasPrefix(binding.RoleRef.Name, "krake-habitat") {
				got = append(got, strings.TrimPrefix(binding.Namespace+": "+binding.RoleRef.Kind+" "+binding.RoleRef.Name, ": "))
				check.Equal(t, in.name+": subjects of "+binding.RoleRef.Name, []rbacv1.Subject{subject}, binding.Subjects)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want[in.name]) {
			t.Errorf("%s: the controller has %v, want %v", in.name, got, want[in.name])
		}
	}
}

// Users with the roles edit and admin also get one of our roles, users with view the other
// one, and no other user gets any.
func TestRolesOfPeople(t *testing.T) {
	const aggregate = "rbac.authorization.k8s.io/aggregate-to-"
	want := map[string][]string{"krake-habitat-edit": {"admin", "edit"}, "krake-habitat-view": {"view"}}
	for _, name := range withHabitat {
		got := map[string][]string{}
		for _, role := range all[*rbacv1.ClusterRole](t, installation(t, name)) {
			for label := range role.Labels {
				if to, ok := strings.CutPrefix(label, aggregate); ok && strings.HasPrefix(role.Name, "krake-habitat") {
					got[role.Name] = append(got[role.Name], to)
					slices.Sort(got[role.Name])
				}
			}
		}
		check.Equal(t, name+": roles of which others are part", want, got)
	}
}

// The controller is a command with a user of its own, which no policy takes for an
// agent. In namespaced mode an administrator has defined Habitats.
func TestTheControllerOfHabitats(t *testing.T) {
	everywhere := []string{"--namespace=krake-system"}
	want := map[string][]string{
		"overlays/habitat": everywhere, "made/strict-habitat": everywhere,
		"made/habitat-namespaced": append(slices.Clone(everywhere), "--assume-crd-registered", "--namespaces=demo"),
	}
	for _, name := range withHabitat {
		in := installation(t, name)
		controllers := deployments(in, "krake-habitat")
		if len(controllers) != 1 {
			t.Fatalf("%s has %d controllers", name, len(controllers))
		}
		controller := controllers[0]
		container := controller.Spec.Template.Spec.Containers[0]
		if diff := cmp.Diff(want[name], container.Args); diff != "" || !slices.Equal(container.Command, []string{"/habitat"}) {
			t.Errorf("%s: %v, arguments (-want +got):\n%s", name, container.Command, diff)
		}
		if controller.Namespace != "krake-system" || controller.Spec.Template.Spec.ServiceAccountName != "krake-habitat" {
			t.Errorf("%s: the controller is %s/%s", name, controller.Namespace, controller.Spec.Template.Spec.ServiceAccountName)
		}
		if slices.ContainsFunc(some[*corev1.ServiceAccount](in), func(a *corev1.ServiceAccount) bool {
			return a.Name == "krake-habitat" && a.Namespace != "krake-system"
		}) {
			t.Errorf("%s: an agent has the controller's name", name)
		}
		checkGoesOn(t, in, controller)
	}
}

// checkGoesOn checks what keeps the controller running: probes at existing ports, a disruption
// budget, and enough time to release the Lease.
func checkGoesOn(t *testing.T, in installed, controller *appsv1.Deployment) {
	t.Helper()
	pod := controller.Spec.Template.Spec
	container := pod.Containers[0]
	for path, probe := range map[string]*corev1.Probe{"/readyz": container.ReadinessProbe, "/healthz": container.LivenessProbe} {
		if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "health" {
			t.Errorf("%s: the probe of %s is %v", in.name, path, probe)
		}
	}
	if *pod.TerminationGracePeriodSeconds <= 30 {
		t.Errorf("%s: the controller is killed after %d s", in.name, *pod.TerminationGracePeriodSeconds)
	}
	budgets := slices.DeleteFunc(all[*policyv1.PodDisruptionBudget](t, in), func(b *policyv1.PodDisruptionBudget) bool {
		return b.Namespace != controller.Namespace || !selects(t, b.Spec.Selector, controller.Spec.Template.Labels)
	})
	if len(budgets) != 1 || budgets[0].Spec.MinAvailable.IntValue() != 1 || *budgets[0].Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("%s: the controller's disruption budgets are %v", in.name, budgets)
	}
}

func definition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := Files.ReadFile("components/habitat/crd/habitats.yaml")
	kit.Must(t, err)
	objects, err := decode(text)
	kit.Must(t, err)
	definition, ok := objects[0].(*apiextensionsv1.CustomResourceDefinition)
	if !ok || len(objects) != 1 {
		t.Fatalf("habitats.yaml has %d objects, the first is a %T", len(objects), objects[0])
	}
	return definition
}

// The definition that is applied in namespaced mode is the one that the process registers in
// cluster mode.
func TestOneDefinition(t *testing.T) {
	for _, in := range installations(t) {
		definitions := some[*apiextensionsv1.CustomResourceDefinition](in)
		if want := in.name == "made/habitat-namespaced"; (len(definitions) == 1) != want {
			t.Errorf("%s has %d definitions", in.name, len(definitions))
		}
		for _, applied := range definitions {
			check.Equal(t, in.name+": the definition", runtime.Object(definition(t)), runtime.Object(applied))
		}
	}
}

// The user-visible parts of the kind.
func TestDefinition(t *testing.T) {
	spec := definition(t).Spec
	names := apiextensionsv1.CustomResourceDefinitionNames{
		Kind: "Habitat", ListKind: "HabitatList", Plural: "habitats", Singular: "habitat", ShortNames: []string{"hab"},
	}
	if diff := cmp.Diff(names, spec.Names); diff != "" || spec.Group != "habitat.sh" || spec.Scope != apiextensionsv1.NamespaceScoped || len(spec.Versions) != 1 {
		t.Fatalf("%s, %s, %d versions, names (-want +got):\n%s", spec.Group, spec.Scope, len(spec.Versions), diff)
	}
	version := spec.Versions[0]
	if version.Name != "v1beta1" || !version.Served || !version.Storage || version.Subresources.Status == nil {
		t.Errorf("version: %+v", version)
	}
	var columns []string
	for _, column := range version.AdditionalPrinterColumns {
		columns = append(columns, fmt.Sprintf("%s %s %d", column.Name, column.JSONPath, column.Priority))
	}
	want := []string{
		"Version .customVersion 0", "State .status.state 0", "Ready .status.ready 0", "Age .metadata.creationTimestamp 0",
		"Peer .status.peer 1", "Message .status.message 1",
	}
	check.Equal(t, "columns", want, columns)
	for path, of := range fields("", version.Schema.OpenAPIV3Schema) {
		checkField(t, path, of)
	}
}

// checkField checks what each field needs: an explanation for kubectl explain, and rules whose
// messages name the way out. Unknown fields are refused.
func checkField(t *testing.T, path string, of apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	isMetadata := path == ".metadata" || path == ".metadata.name"
	if of.Description == "" && !isMetadata && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s is not explained", path)
	}
	if of.XPreserveUnknownFields != nil || of.AdditionalProperties != nil || of.XEmbeddedResource {
		t.Errorf("%s has unknown fields", path)
	}
	if of.Type == "array" && of.MaxItems == nil && !strings.HasPrefix(path, ".status") {
		t.Errorf("%s has no limit", path)
	}
	checkRules(t, path, of)
}

// checkRules checks that rules of objects name the field that they concern, unless it is the
// object.
func checkRules(t *testing.T, path string, of apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	isMeant := path == ".spec.v1beta2.persistentStorage" || strings.HasSuffix(path, ".valueFrom")
	for _, rule := range of.XValidations {
		if rule.Message == "" || strings.HasSuffix(rule.Message, ".") || strings.Contains(rule.Message, "\n") {
			t.Errorf("%s: the message of %s is %q", path, rule.Rule, rule.Message)
		}
		if of.Type == "object" && rule.FieldPath == "" && !isMeant {
			t.Errorf("%s: %q says no field", path, rule.Message)
		}
	}
}

// fields returns all fields, by their paths.
func fields(path string, of *apiextensionsv1.JSONSchemaProps) map[string]apiextensionsv1.JSONSchemaProps {
	found := map[string]apiextensionsv1.JSONSchemaProps{path: *of}
	for name, child := range of.Properties {
		maps.Copy(found, fields(path+"."+name, &child))
	}
	if of.Items != nil {
		maps.Copy(found, fields(path+"[]", of.Items.Schema))
	}
	return found
}

// A Habitat's variables are those of Pods: they have all fields of a Pod's variables.
func TestVariablesAreThoseOfPods(t *testing.T) {
	all := fields("", definition(t).Spec.Versions[0].Schema.OpenAPIV3Schema)
	for _, at := range []string{".spec.env", ".spec.v1beta2.env"} {
		got := map[string]bool{}
		for path := range all {
			if below, ok := strings.CutPrefix(path, at+"[]."); ok {
				got[below] = true
			}
		}
		want := map[string]bool{}
		jsonFields(want, "", reflect.TypeFor[corev1.EnvVar]())
		check.Equal(t, at+" beside that of Pods", want, got)
	}
}

// jsonFields collects the paths of a type's fields. A quantity is a leaf.
func jsonFields(into map[string]bool, path string, of reflect.Type) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[resource.Quantity]() {
		return
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			jsonFields(into, path, field.Type)
			continue
		}
		into[path+name] = true
		jsonFields(into, path+name+".", field.Type)
	}
}
