package mutate

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// HookSecret tells what a Secret that a hook has added is for.
type HookSecret struct {
	Hook application.Hook
	// Certs: it holds the certificates, and otherwise the token and the URL to call.
	Certs bool
}

// injection is what the hooks of an Application make of it.
type injection struct {
	// resources and custom schemas, which end with those of the Secrets.
	resources, custom []map[string]any
	secrets           []HookSecret
	warnings          []string
}

// inject gives resources and custom observer schemas with what the hooks want
// (step 3): in each container of a workload
//
//	volumeMounts: [{name: A-krake-complete-volume, mountPath: /etc/krake_complete_certs/}]
//	env:
//	- {name: KRAKE_COMPLETE_TOKEN, value: "", valueFrom: {secretKeyRef: {name: A-krake-complete-secret-token, key: krake_complete_token}}}
//	- {name: KRAKE_COMPLETE_URL, value: "", valueFrom: ...}
//
// the volume in its Pods, and one Secret for the certificates and one for token
// and URL in each of the workloads' namespaces. The values of the Secrets are for
// the agent to make, so that the result is a function of the arguments. Those
// have passed [schema.Mangle], are not changed, and may share values with the result.
//
// The schemas are extended by what was added, custom ones and those by default:
// what they observe of the rest stays as it is, see [observedList.insert].
func inject(hooks application.Hooks, resources, custom []map[string]any) (injection, field.ErrorList) {
	if len(hooks.Enabled()) == 0 {
		return injection{resources: resources, custom: custom}, nil
	}
	workloads := workloadsOf(hooks, resources)
	i := injector{additions: additionsOf(hooks), refusals: slices.Concat(checkHookNames(hooks), checkHookSecrets(hooks, resources))}
	i.resources, i.custom = slices.Clone(resources), withDefaults(resources, custom)
	schemas := schemasOf(resources, i.custom)
	for _, w := range workloads {
		at := schemas[w.index]
		if at >= len(custom) {
			i.openNulls(w, i.custom[at])
		}
		i.refuse(w)
		i.resources[w.index] = i.added(w)
		i.custom[at] = i.extended(w, i.custom[at], schemaPath(at))
	}
	if len(i.refusals) > 0 {
		return injection{}, i.refusals
	}
	i.addSecrets(hooks, namespacesOf(hooks, workloads))
	i.warnings = slices.Concat(i.warnings, suspectHooks(hooks, workloads, resources))
	return i.injection, nil
}

// workload is a resource of whose Pods the containers get what the hooks want.
type workload struct {
	index     int
	resource  map[string]any
	namespace string
	// path leads to the spec of its Pods; lists are those of their containers.
	path  []string
	lists []string
}

func workloadsOf(hooks application.Hooks, resources []map[string]any) []workload {
	lists := []string{"containers"}
	if hooks.InitContainers {
		lists = append(lists, "initContainers")
	}
	var workloads []workload
	for i, resource := range resources {
		id, _ := manifest.Identify(resource)
		path, runsPods := apitypes.PodPath(id)
		w := workload{index: i, resource: resource, namespace: id.Namespace, path: append(path, "spec"), lists: lists}
		if runsPods && w.isReadable() {
			workloads = append(workloads, w)
		}
	}
	return workloads
}

func (w workload) spec() map[string]any { return below(w.resource, w.path...) }

// isReadable tells if there is a container, and nothing in the way of what is to
// be added. The rest is left alone: an API server refuses it.
func (w workload) isReadable() bool {
	spec, containers := w.spec(), 0
	for _, name := range w.lists {
		items, ok := listOf(spec[name])
		if !ok || slices.ContainsFunc(items, func(item any) bool { return !isReadable(item) }) {
			return false
		}
		containers += len(items)
	}
	_, ok := listOf(spec["volumes"])
	return ok && containers > 0
}

func isReadable(container any) bool {
	fields, ok := container.(map[string]any)
	_, mounts := listOf(fields["volumeMounts"])
	_, variables := listOf(fields["env"])
	return ok && mounts && variables
}

// listOf gives the items of a list. A null is an empty one.
func listOf(value any) ([]any, bool) {
	items, ok := value.([]any)
	return items, ok || value == nil
}

// containers gives those of a spec of Pods that get what the hooks want, with their places.
func (w workload) containers(spec map[string]any) iter.Seq2[string, map[string]any] {
	return func(yield func(string, map[string]any) bool) {
		for _, name := range w.lists {
			items, _ := listOf(spec[name])
			for i, item := range items {
				if container, _ := item.(map[string]any); !yield(fmt.Sprintf("%s[%d]", name, i), container) {
					return
				}
			}
		}
	}
}

// withDefaults gives the custom schemas, and the default ones of workloads that have
// none. Made of what the hooks have left, a default schema would allow others no
// elements in a list that the user has said nothing of: the volume of a Pod's
// service account, the variables of an injected sidecar.
func withDefaults(resources, custom []map[string]any) []map[string]any {
	with, schemas := slices.Clone(custom), schemasOf(resources, custom)
	for i, resource := range resources {
		id, _ := manifest.Identify(resource)
		_, hasSchema := schemas[i]
		if _, runsPods := apitypes.PodPath(id); hasSchema || !runsPods {
			continue
		}
		if observed, err := schema.Default(resource); err == nil { // it was identified
			with = append(with, observed.Document())
		}
	}
	return with
}

// schemasOf gives the index of a resource's custom schema, paired as
// [schema.Mangle] pairs them.
func schemasOf(resources, custom []map[string]any) map[int]int {
	schemas := map[int]int{}
	for i, resource := range manifest.PairNamesakes(identities(custom), identities(resources)) {
		schemas[resource] = i
	}
	return schemas
}

// additions are what hooks add to the Pods of a workload, and to each container.
type additions struct{ pod, container []addition }

// addition is what is added to one list.
type addition struct {
	list string
	// keys tell its elements apart, each by itself.
	keys   []string
	pieces []piece
}

// piece is an element, and the hook that it is for.
type piece struct {
	hook   application.Hook
	fields map[string]any
}

func additionsOf(hooks application.Hooks) additions {
	volumes := addition{list: "volumes", keys: []string{"name"}}
	mounts := addition{list: "volumeMounts", keys: []string{"mountPath", "name"}}
	variables := addition{list: "env", keys: []string{"name"}}
	for _, hook := range hooks.Enabled() {
		volume := application.HookVolume(hooks.Application, hook)
		certs, token := application.CertsSecret(hooks.Application, hook), application.TokenSecret(hooks.Application, hook)
		volumes.pieces = append(volumes.pieces, piece{hook, map[string]any{"name": volume, "secret": map[string]any{"secretName": certs}}})
		mounts.pieces = append(mounts.pieces, piece{hook, map[string]any{"name": volume, "mountPath": application.CertsPath(hook)}})
		variables.pieces = append(variables.pieces,
			piece{hook, variable(application.TokenVariable(hook), token, application.TokenKey(hook))},
			piece{hook, variable(application.URLVariable(hook), token, application.URLKey(hook))})
	}
	return additions{pod: []addition{volumes}, container: []addition{mounts, variables}}
}

// variable is one whose value is in a Secret. The empty value, which a server
// drops, has one taken away again that somebody has set: "kubectl set env" puts a
// value in place of the reference, and an API server takes no variable with both.
func variable(name, secret, key string) map[string]any {
	return map[string]any{
		"name":      name,
		"value":     "",
		"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": secret, "key": key}},
	}
}

func (a addition) addTo(fields map[string]any) {
	items, _ := listOf(fields[a.list])
	items = slices.Clip(items)
	for _, p := range a.pieces {
		items = append(items, runtime.DeepCopyJSONValue(p.fields))
	}
	fields[a.list] = items
}

// refusals refuses elements of a list of the user's that have a key of what is added.
func (a addition) refusals(fields map[string]any, at string) field.ErrorList {
	var refusals field.ErrorList
	items, _ := listOf(fields[a.list])
	for i, item := range items {
		given, _ := item.(map[string]any)
		for _, p := range a.pieces {
			for _, key := range a.keys {
				if isTaken(given[key], p.fields[key]) {
					refusals = append(refusals, forbidden(fmt.Sprintf("%s.%s[%d].%s", at, a.list, i, key), isOfHook(p.hook)))
				}
			}
		}
	}
	return refusals
}

func isOfHook(hook application.Hook) string {
	return fmt.Sprintf("it is what the hook %s adds: choose another one, or take the hook out of annotation %s", hook, application.HooksAnnotation)
}

// isTaken tells if two names are the same, or two paths, however they are written.
func isTaken(given, ours any) bool {
	name, isText := given.(string)
	taken, _ := ours.(string)
	return isText && (name == taken || path.IsAbs(taken) && path.Clean("/"+name) == path.Clean(taken))
}

// injector puts an injection together.
type injector struct {
	injection
	additions

	refusals field.ErrorList
}

// refuse refuses what the user has in the place of what is to be added.
func (i *injector) refuse(w workload) {
	spec, at := w.spec(), strings.Join(append([]string{resourcePath(w.index)}, w.path...), ".")
	for _, a := range i.pod {
		i.refusals = append(i.refusals, a.refusals(spec, at)...)
	}
	for place, container := range w.containers(spec) {
		for _, a := range i.container {
			i.refusals = append(i.refusals, a.refusals(container, at+"."+place)...)
		}
	}
}

// added gives the resource with what is added.
func (i *injector) added(w workload) map[string]any {
	added := runtime.DeepCopyJSON(w.resource)
	spec := below(added, w.path...)
	for _, a := range i.pod {
		a.addTo(spec)
	}
	for _, container := range w.containers(spec) {
		for _, a := range i.container {
			a.addTo(container)
		}
	}
	return added
}

// namespacesOf gives the namespaces of the workloads, as they are written first: the
// Application's own may be left out.
func namespacesOf(hooks application.Hooks, workloads []workload) []string {
	var namespaces []string
	for _, w := range workloads {
		if !isAmong(hooks, namespaces, w.namespace) {
			namespaces = append(namespaces, w.namespace)
		}
	}
	return namespaces
}

func isAmong(hooks application.Hooks, namespaces []string, wanted string) bool {
	return slices.ContainsFunc(namespaces, func(namespace string) bool {
		return cmp.Or(namespace, hooks.Namespace) == cmp.Or(wanted, hooks.Namespace)
	})
}

// addSecrets puts the Secrets at the end, with schemas that observe what they will
// hold. The k-th schema of a name is that of the k-th Secret of that name.
func (i *injector) addSecrets(hooks application.Hooks, namespaces []string) {
	for _, hook := range hooks.Enabled() {
		for _, secret := range []HookSecret{{Hook: hook, Certs: true}, {Hook: hook}} {
			for _, namespace := range namespaces {
				resource := secret.resource(hooks.Application, namespace)
				i.resources = append(i.resources, resource)
				i.custom = append(i.custom, secret.schema(resource))
				i.secrets = append(i.secrets, secret)
			}
		}
	}
}

func (s HookSecret) name(app string) string {
	if s.Certs {
		return application.CertsSecret(app, s.Hook)
	}
	return application.TokenSecret(app, s.Hook)
}

func (s HookSecret) keys() []string {
	if s.Certs {
		return []string{application.CABundleKey, application.CertificateKey, application.PrivateKeyKey}
	}
	return []string{application.TokenKey(s.Hook), application.URLKey(s.Hook)}
}

// resource is the Secret without what it holds.
func (s HookSecret) resource(app, namespace string) map[string]any {
	metadata := map[string]any{"name": s.name(app)}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
}

// schema is what [schema.Default] says of the Secret, and what it will hold.
func (s HookSecret) schema(resource map[string]any) map[string]any {
	metadata := map[string]any{"name": below(resource, "metadata")["name"]}
	if _, ok := below(resource, "metadata")["namespace"]; ok {
		metadata["namespace"] = nil
	}
	data := map[string]any{}
	for _, key := range s.keys() {
		data[key] = nil
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": nil, "data": data}
}

// checkHookNames refuses an Application after which no Secret can be named.
func checkHookNames(hooks application.Hooks) field.ErrorList {
	var refusals field.ErrorList
	for _, hook := range hooks.Enabled() {
		name := application.TokenSecret(hooks.Application, hook)
		if more := len(name) - validation.DNS1123SubdomainMaxLength; more > 0 {
			refusals = append(refusals, invalid("metadata.name", fmt.Sprintf(
				"the Secrets of the hook %s are named after the Application: choose a name of at most %d characters, or take the hook out of annotation %s",
				hook, len(hooks.Application)-more, application.HooksAnnotation)))
		}
	}
	return refusals
}

// checkHookSecrets refuses Secrets of the names of those of the hooks, in whatever
// namespace: schemas say none, and one that observes what a Secret holds must not
// get to another one, whose values would then be in the status.
func checkHookSecrets(hooks application.Hooks, resources []map[string]any) field.ErrorList {
	var refusals field.ErrorList
	for i, resource := range resources {
		if !isCore(resource, "Secret") {
			continue
		}
		for _, hook := range hooks.Enabled() {
			name := below(resource, "metadata")["name"]
			if name == application.TokenSecret(hooks.Application, hook) || name == application.CertsSecret(hooks.Application, hook) {
				refusals = append(refusals, forbidden(resourcePath(i)+".metadata.name", isOfHook(hook)))
			}
		}
	}
	return refusals
}

// suspectHooks warns of hooks that nobody can call, and of a shutdown for which
// nobody can be asked.
func suspectHooks(hooks application.Hooks, workloads []workload, resources []map[string]any) []string {
	if len(workloads) == 0 {
		return []string{"metadata.annotations[" + application.HooksAnnotation + "]: the manifest has no workload with containers " +
			"that could call a hook, so that nothing is added: add one, or leave the annotation out"}
	}
	namespaces := namespacesOf(hooks, workloads)
	asked := func(resource map[string]any) bool {
		id, _ := manifest.Identify(resource)
		return isShutdownService(resource) && isAmong(hooks, namespaces, id.Namespace)
	}
	if !hooks.Shutdown || slices.ContainsFunc(resources, asked) {
		return nil
	}
	return []string{"metadata.annotations[" + application.HooksAnnotation + "]: the manifest has no Service named " + application.ShutdownService +
		" in the namespace of its workloads, so that nobody can be asked to shut down: add one for the Pods that answer PUT /shutdown, or leave the hook shutdown out"}
}

// isShutdownService tells if a resource is that Service. One that only stands for a
// name elsewhere is none of the Application's.
func isShutdownService(resource map[string]any) bool {
	id, _ := manifest.Identify(resource)
	return id.APIVersion == "v1" && id.Kind == "Service" && id.Name == application.ShutdownService && below(resource, "spec")["type"] != "ExternalName"
}
