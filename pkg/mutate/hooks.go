package mutate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// injection is the result of the hooks of an Application.
type injection struct {
	// resources and custom schemas end with those of the Secrets.
	resources, custom []map[string]any
	secrets           []HookSecret
	warnings          []string
}

// inject returns resources and custom observer schemas with what the hooks add (step 3). Each
// container of a workload gets
//
//	volumeMounts: [{name: A-krake-complete-volume, mountPath: /etc/krake_complete_certs/}]
//	env:
//	- {name: KRAKE_COMPLETE_TOKEN, value: "", valueFrom: {secretKeyRef: {name: A-krake-complete-secret-token, key: krake_complete_token}}}
//	- {name: KRAKE_COMPLETE_URL, value: "", valueFrom: ...}
//
// its Pods get the volume, and each namespace of a workload gets one Secret for the certificates
// and one for token and URL. The agent makes the values of the Secrets, so that the result is a
// function of the arguments. The arguments have passed [schema.Mangle]. inject does not change
// them, but may share values with the result.
//
// The schemas, custom and default ones, observe the additions. They observe all other fields as
// before, see [observedList.insert].
func inject(hooks application.Hooks, resources, custom []map[string]any) (injection, field.ErrorList) {
	if len(hooks.Enabled()) == 0 {
		return injection{resources: resources, custom: custom}, nil
	}
	added, workloads := additionsOf(hooks), workloadsOf(hooks, resources)
	if refusal := added.checkRoom(workloads, resources); refusal != nil {
		return injection{}, field.ErrorList{refusal}
	}
	result := injection{resources: slices.Clone(resources), custom: withDefaults(resources, custom)}
	refusals := slices.Concat(checkHookNames(hooks), checkHookSecrets(hooks, resources))
	schemas := schemasOf(resources, result.custom)
	for _, w := range workloads {
		at := schemas[w.index]
		extended := extension{additions: added, isDefault: at >= len(custom)}
		result.resources[w.index] = added.addTo(w)
		result.custom[at] = extended.of(w, result.custom[at], schemaPath(at))
		result.warnings = append(result.warnings, extended.warnings...)
		refusals = slices.Concat(refusals, added.checkFree(w), extended.refusals)
	}
	if len(refusals) > 0 {
		return injection{}, refusals
	}
	result.addSecrets(hooks, namespacesOf(hooks, workloads))
	result.warnings = append(result.warnings, suspectHooks(hooks, workloads, resources)...)
	return result, nil
}

// withDefaults returns the custom schemas, and default schemas for workloads without one. A default
// schema computed after the additions would allow no other elements in a list that the user omits.
// An example is the volume of a Pod's service account.
func withDefaults(resources, custom []map[string]any) []map[string]any {
	with, schemas := slices.Clone(custom), schemasOf(resources, custom)
	for i, resource := range resources {
		id, _ := manifest.Identify(resource)
		_, hasSchema := schemas[i]
		if _, runsPods := apitypes.PodPath(id); hasSchema || !runsPods {
			continue
		}
		if observed, err := schema.Default(resource); err == nil { // it has an identity
			with = append(with, observed.Document())
		}
	}
	return with
}

// schemasOf returns the index of each resource's custom schema, paired as in [schema.Mangle].
func schemasOf(resources, custom []map[string]any) map[int]int {
	schemas := map[int]int{}
	for i, resource := range manifest.PairNamesakes(identities(custom), identities(resources)) {
		schemas[resource] = i
	}
	return schemas
}

// addSecrets appends the Secrets, with schemas that observe their values. The k-th schema of a name
// belongs to the k-th Secret of that name.
func (i *injection) addSecrets(hooks application.Hooks, namespaces []string) {
	for _, hook := range hooks.Enabled() {
		for _, secret := range []HookSecret{{Hook: hook, Certs: true}, {Hook: hook}} {
			for _, namespace := range namespaces {
				resource, observed := secret.documents(hooks.Application, namespace)
				i.resources = append(i.resources, resource)
				i.custom = append(i.custom, observed)
				i.secrets = append(i.secrets, secret)
			}
		}
	}
}

// suspectHooks warns of hooks that no container can call, and of a shutdown hook without a Service
// to call.
func suspectHooks(hooks application.Hooks, workloads []workload, resources []map[string]any) []string {
	if len(workloads) == 0 {
		return []string{annotationPath(application.HooksAnnotation) + ": the manifest has no workload with containers " +
			"that could call a hook, so the hooks add nothing: add one, or leave the annotation out"}
	}
	namespaces := namespacesOf(hooks, workloads)
	isAsked := func(resource map[string]any) bool {
		id, _ := manifest.Identify(resource)
		isService := id.APIVersion == "v1" && id.Kind == "Service" && id.Name == application.ShutdownService
		isElsewhere := below(resource, "spec")["type"] == "ExternalName"
		return isService && !isElsewhere && isAmong(hooks, namespaces, id.Namespace)
	}
	if !hooks.Shutdown || slices.ContainsFunc(resources, isAsked) {
		return nil
	}
	return []string{annotationPath(application.HooksAnnotation) + ": the manifest has no Service named " + application.ShutdownService +
		" in the namespace of its workloads, so the agent cannot ask the Application to shut down: add one for the Pods that answer PUT /shutdown, or leave the hook shutdown out"}
}
