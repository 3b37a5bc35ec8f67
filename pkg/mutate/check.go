package mutate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// checkConfigMap refuses a ConfigMap that cannot be an Application.
func checkConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	if cm.Name == "" {
		refusals = append(refusals, forbidden("metadata.generateName", "an Application owns its objects by its name: set metadata.name"))
	}
	if slices.Contains([]string{"kube-system", application.SystemNamespace, application.AgentsNamespace}, cm.Namespace) {
		refusals = append(refusals, forbidden("metadata.namespace",
			"the namespaces of Kubernetes and of webhook and agents have no Applications: choose another one"))
	}
	if cm.Name == "kube-root-ca.crt" {
		refusals = append(refusals, forbidden("metadata.name", "Kubernetes manages the ConfigMap of this name: choose another one"))
	}
	if ptr.Deref(cm.Immutable, false) {
		refusals = append(refusals, forbidden("immutable", "the status of an Application is kept in the ConfigMap: leave immutable out"))
	}
	return slices.Concat(refusals, checkAnnotations(cm), checkData(cm))
}

func checkAnnotations(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	annotations := field.NewPath("metadata", "annotations")
	if format := cm.Annotations[application.FormatAnnotation]; format != application.Format {
		refusals = append(refusals, field.NotSupported(annotations.Key(application.FormatAnnotation), format, []string{application.Format}))
	}
	for _, problem := range validation.IsDNS1123Label(application.ClusterOf(cm)) {
		refusals = append(refusals, field.Invalid(annotations.Key(application.ClusterAnnotation), cm.Annotations[application.ClusterAnnotation], problem))
	}
	account, named := cm.Annotations[application.ServiceAccountAnnotation]
	if account == "default" { // its rights would be those of every Pod of the namespace
		refusals = append(refusals, forbidden(annotationPath(application.ServiceAccountAnnotation),
			"every Pod of the namespace acts as default: name a separate account"))
	}
	if named && len(validation.IsDNS1123Subdomain(account)) > 0 {
		refusals = append(refusals, field.Invalid(annotations.Key(application.ServiceAccountAnnotation), account,
			"it is no name: name a service account of the Application's namespace, or leave it out"))
	}
	return refusals
}

// checkData refuses a spec without resources, and keys that look like keys of the spec and
// have a typing error.
func checkData(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	if !hasSource(cm) {
		refusals = append(refusals, field.Required(field.NewPath("data", application.ManifestKey),
			"the manifest of the Application, as YAML or JSON, or in its place a TOSCA template as "+application.ToscaKey+" or an archive as "+application.CSARKey))
	}
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		if application.IsSpecKey(key) && !slices.Contains(application.SpecKeys(), key) {
			refusals = append(refusals, forbidden("data."+key, notAKey()))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		switch {
		case key == application.CSARKey || !application.IsSpecKey(key):
		case key == application.ManifestKey && application.IsCompressed(string(cm.BinaryData[key])):
		case slices.Contains(application.SpecKeys(), key): // kubectl create configmap --from-file
			refusals = append(refusals, forbidden("binaryData."+key,
				"kubectl puts a file there whose text is not UTF-8, such as one in UTF-16, as PowerShell writes it with >: save the file as UTF-8"))
		default:
			refusals = append(refusals, forbidden("binaryData."+key, notAKey()))
		}
	}
	return refusals
}

// hasSource reports whether a key says which resources the Application has.
func hasSource(cm *corev1.ConfigMap) bool {
	_, manifest := cm.Data[application.ManifestKey]
	_, compressed := cm.BinaryData[application.ManifestKey]
	_, template := cm.Data[application.ToscaKey]
	_, archive := cm.Data[application.CSARKey]
	_, archived := cm.BinaryData[application.CSARKey]
	return manifest || compressed || template || archive || archived
}

func notAKey() string {
	return "the keys of a spec are " + inWords(application.SpecKeys()) + ", below data, and below binaryData " + application.CSARKey +
		" and, compressed by gzip, " + application.ManifestKey
}

// checkNewAnnotations refuses unknown annotations of this project, which would have no effect. With
// a misspelled annotation for the cluster, for example, the objects would be on this cluster. A
// stored annotation may be of another version of this program, and stays.
func checkNewAnnotations(cm, stored *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(cm.Annotations)) {
		former, had := stored.Annotations[name]
		isKnown := name == application.HeldByAnnotation || name == application.SignatureAnnotation || slices.Contains(application.UserAnnotations(), name)
		if !manifest.IsReserved(name) || isKnown || had && former == cm.Annotations[name] {
			continue
		}
		refusals = append(refusals, forbidden(annotationPath(name),
			"no such annotation is known here: there are "+strings.Join(application.UserAnnotations(), ", ")))
	}
	return refusals
}

// checkSettings refuses annotations with invalid values. A stored invalid value stays and counts as
// its default, so that it does not prevent other edits.
func checkSettings(cm, stored *corev1.ConfigMap) field.ErrorList {
	changed := maps.Clone(cm.Annotations)
	maps.DeleteFunc(changed, func(name, value string) bool {
		former, had := stored.Annotations[name]
		return had && former == value
	})
	_, refusals := application.SettingsOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Annotations: changed}})
	_, asked := changed[application.ForceDeleteAnnotation]
	if asked || application.ClusterOf(cm) != application.ClusterOf(stored) {
		refusals = append(refusals, checkForceDelete(cm)...)
	}
	slices.SortFunc(refusals, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return refusals
}

// checkForceDelete refuses to give up the current cluster of an Application that is not being
// deleted, because its agent would create the objects again.
func checkForceDelete(cm *corev1.ConfigMap) field.ErrorList {
	value := cm.Annotations[application.ForceDeleteAnnotation]
	path := field.NewPath("metadata", "annotations").Key(application.ForceDeleteAnnotation)
	if value == "" || value == "true" || value == "false" {
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		switch {
		case len(validation.IsDNS1123Label(name)) > 0:
			return field.ErrorList{field.Invalid(path, value, `it has to be "true", or the names of clusters, with commas between`)}
		case name == application.ClusterOf(cm):
			return field.ErrorList{field.Invalid(path, value, "the Application is on cluster "+name+": move it to another one, or delete it, to give up what it has there")}
		}
	}
	return nil
}

// checkSize refuses a spec that would leave no room for the status. A compressed manifest is bounded when it is expanded.
func checkSize(spec application.Spec) field.ErrorList {
	size := len(spec.ObserverSchema) + len(spec.Tosca) + len(spec.CSAR)
	if !application.IsCompressed(spec.Manifest) {
		size += len(spec.Manifest)
	}
	if size <= application.MaxPlainBytes {
		return nil
	}
	source, _ := spec.Source()
	keys := append([]string{source, application.ObserverSchemaKey}, slices.Sorted(slices.Values(unusedSources(spec)))...)
	remedy := "split the Application"
	if source == application.ManifestKey && !application.IsCompressed(spec.Manifest) {
		remedy = "compress the manifest, as kubectl krake create does, or split the Application"
	}
	return field.ErrorList{invalid("data", fmt.Sprintf(
		"%s have %d bytes together; the maximum is %d: %s", inWords(keys), size, application.MaxPlainBytes, remedy))}
}

// unusedSources returns the keys of sources without effect, because another source takes
// precedence.
func unusedSources(spec application.Spec) []string {
	source, _ := spec.Source()
	var unused []string
	if spec.Tosca != "" && source != application.ToscaKey {
		unused = append(unused, application.ToscaKey)
	}
	if spec.CSAR != "" && source != application.CSARKey {
		unused = append(unused, application.CSARKey)
	}
	return unused
}

// inWords returns "a, b and c".
func inWords(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// The limits of the API server for a ConfigMap.
const (
	maxDataBytes       = 1 << 20
	maxAnnotationBytes = 256 << 10
)

// checkRoom refuses a ConfigMap that the API server would refuse, and reports how the bytes are
// distributed. It also refuses one without room for the expected bytes. An agent that cannot record
// its actions would repeat them forever.
func checkRoom(cm *corev1.ConfigMap, toCome int) field.ErrorList {
	var refusals field.ErrorList
	yours, ours := 0, 0
	count := func(key string, size int) {
		if application.IsStatusKey(key) {
			ours += size
		} else {
			yours += size
		}
	}
	for key, value := range cm.Data {
		count(key, len(value))
	}
	for key, value := range cm.BinaryData {
		count(key, len(value))
	}
	if total := yours + ours + toCome; total > maxDataBytes {
		refusals = append(refusals, invalid("data", fmt.Sprintf(
			"the ConfigMap would have %d bytes: %d of yours, %d of status, and %d to come when the objects are observed; the maximum is %d: split the Application, or keep other data elsewhere",
			total, yours, ours, toCome, maxDataBytes)))
	}
	annotations := 0
	for name, value := range cm.Annotations {
		annotations += len(name) + len(value)
	}
	if annotations > maxAnnotationBytes {
		refusals = append(refusals, invalid("metadata.annotations", fmt.Sprintf(
			"they have %d bytes; the maximum is %d: kubectl apply copies the whole ConfigMap into one, kubectl apply --server-side does not",
			annotations, maxAnnotationBytes)))
	}
	return refusals
}

// checkItself refuses the Application as an object of itself. On another cluster, a ConfigMap of its
// name is another object.
func checkItself(cm *corev1.ConfigMap, wanted []manifest.ID) field.ErrorList {
	if application.ClusterOf(cm) != application.LocalCluster {
		return nil
	}
	for i, id := range wanted {
		if id.APIVersion == "v1" && id.Kind == "ConfigMap" && id.Name == cm.Name && (id.Namespace == "" || id.Namespace == cm.Namespace) {
			return field.ErrorList{invalid(ResourcePath(i)+".metadata.name",
				"the Application is a ConfigMap of this name itself: give the Application or the object another name")}
		}
	}
	return nil
}
