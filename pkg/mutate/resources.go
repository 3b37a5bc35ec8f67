package mutate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// checkResources refuses resources that an Application cannot own.
func checkResources(resources []map[string]any) field.ErrorList {
	var refusals field.ErrorList
	for i, resource := range resources {
		at := ResourcePath(i)
		if isList(resource) {
			refusals = append(refusals, invalid(at+".kind", `a List is not supported: write its items as documents, separated by "---"`))
			continue
		}
		refusals = slices.Concat(refusals, checkNames(resource, at), checkMetadata(resource, at), checkSecret(resource, at), checkReserved(resource, at))
	}
	return refusals
}

// checkSchemas refuses observer schemas of fields that a user must not set: those of the server and
// of the garbage collector, and the values of Secrets. Those values would be published in the
// status.
func checkSchemas(schemas []map[string]any) field.ErrorList {
	var refusals field.ErrorList
	for i, document := range schemas {
		at := schemaPath(i)
		if _, ok := document["status"]; ok {
			refusals = append(refusals, forbidden(at+".status", "only the server writes it: leave it out"))
		}
		refusals = slices.Concat(refusals, checkMetadata(document, at), checkSecretSchema(document, at), checkReserved(document, at), checkLengths(document, at))
		if _, ok := below(document, "spec")["nodeName"]; ok && isCore(document, "Pod") {
			refusals = append(refusals, forbidden(at+".spec.nodeName", "only the scheduler writes it: leave it out"))
		}
	}
	return refusals
}

// isList reports whether a resource consists of others, which would bypass the checks.
func isList(resource map[string]any) bool {
	kind, _ := resource["kind"].(string)
	_, hasItems := resource["items"]
	return kind == "List" || hasItems && strings.HasSuffix(kind, "List")
}

// checkNames refuses invalid names, because names become a part of a request's path.
func checkNames(resource map[string]any, at string) field.ErrorList {
	id, err := manifest.Identify(resource)
	if err != nil {
		return nil // the schema reports it
	}
	var refusals field.ErrorList
	for _, problem := range content.IsPathSegmentName(id.Name) {
		refusals = append(refusals, invalid(at+".metadata.name", problem))
	}
	if namespace, ok := below(resource, "metadata")["namespace"]; ok && namespace != nil && id.Namespace == "" && namespace != "" {
		refusals = append(refusals, invalid(at+".metadata.namespace", "it has to be a string, or to be left out"))
	}
	if id.Namespace != "" {
		for _, problem := range validation.IsDNS1123Label(id.Namespace) {
			refusals = append(refusals, invalid(at+".metadata.namespace", problem))
		}
	}
	if gvk := id.GroupVersionKind(); gvk.GroupVersion().String() != id.APIVersion || len(validation.IsDNS1035Label(gvk.Version)) > 0 ||
		gvk.Group != "" && len(validation.IsDNS1123Subdomain(gvk.Group)) > 0 {
		refusals = append(refusals, invalid(at+".apiVersion", "it is neither a version nor a group and a version"))
	}
	if !isIdentifier(id.Kind) {
		refusals = append(refusals, invalid(at+".kind", "a kind has letters and digits only, and begins with a letter"))
	}
	return refusals
}

func isIdentifier(kind string) bool {
	return len(validation.IsDNS1035Label(strings.ToLower(kind))) == 0 && !strings.Contains(kind, "-")
}

// checkMetadata allows name, namespace, labels and annotations. The server writes the other fields,
// or they make the garbage collector delete objects. Empty values are allowed: generators write
// "creationTimestamp: null".
func checkMetadata(document map[string]any, at string) field.ErrorList {
	metadata := below(document, "metadata")
	observed := strings.HasPrefix(at, schemasPath)
	var refusals field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		switch name {
		case "name", "namespace", "labels", "annotations":
			continue
		}
		if observed || !isEmpty(metadata[name]) {
			refusals = append(refusals, forbidden(at+".metadata."+name,
				"an Application sets only the metadata name, namespace, labels and annotations: leave it out"))
		}
	}
	return refusals
}

// secretKeys are the fields of a Secret with its values.
func secretKeys() []string { return []string{"data", "stringData"} }

// checkSecret refuses the values of Secrets, which would be visible in the ConfigMap.
func checkSecret(resource map[string]any, at string) field.ErrorList {
	if !isCore(resource, "Secret") {
		return nil
	}
	var refusals field.ErrorList
	for _, key := range secretKeys() {
		if !isEmpty(resource[key]) {
			refusals = append(refusals, forbidden(at+"."+key, "everyone with read access to ConfigMaps could see the values of the Secret: "+
				"create it separately, with kubectl create secret or an operator for external or sealed secrets, and refer to it by its name"))
		}
	}
	if _, kept := below(resource, "metadata", "annotations")[corev1.LastAppliedConfigAnnotation]; kept {
		refusals = append(refusals, forbidden(at+".metadata.annotations", "kubectl apply keeps a copy of the Secret there, with its values: leave "+corev1.LastAppliedConfigAnnotation+" out"))
	}
	return refusals
}

// secretPaths returns the observed fields of a Secret whose live values may be secret.
func secretPaths(observed schema.Schema, resource map[string]any) [][]string {
	var paths [][]string
	for _, key := range secretKeys() {
		if observed.Observes(key) {
			paths = append(paths, []string{key})
		}
	}
	document, given := below(observed.Document(), "metadata"), below(resource, "metadata", "annotations")
	annotations, isObserved := document["annotations"]
	names, isObject := annotations.(map[string]any)
	if isObserved && !isObject {
		return append(paths, []string{"metadata", "annotations"})
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, isText := given[name].(string); !isText || names[name] != nil {
			paths = append(paths, []string{"metadata", "annotations", name})
		}
	}
	return paths
}

func checkSecretSchema(document map[string]any, at string) field.ErrorList {
	if !isCore(document, "Secret") {
		return nil
	}
	const reason = "it would copy values of the Secret into the status, which everyone with read access to ConfigMaps can see: leave it out"
	var refusals field.ErrorList
	for _, key := range secretKeys() {
		if _, ok := document[key]; ok {
			refusals = append(refusals, forbidden(at+"."+key, reason))
		}
	}
	annotations, ok := below(document, "metadata")["annotations"]
	named, isObject := annotations.(map[string]any)
	if _, pinned := named[corev1.LastAppliedConfigAnnotation]; ok && !isObject || pinned {
		refusals = append(refusals, forbidden(at+".metadata.annotations", "kubectl apply keeps a copy of the Secret there, and "+reason))
	}
	return refusals
}
