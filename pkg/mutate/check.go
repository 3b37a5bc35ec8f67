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

// checkConfigMap refuses what no Application can be.
func checkConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	if cm.Name == "" {
		refusals = append(refusals, field.Forbidden(field.NewPath("metadata", "generateName"),
			"an Application owns its objects by its name: set metadata.name"))
	}
	if slices.Contains([]string{"kube-system", application.SystemNamespace, application.AgentsNamespace}, cm.Namespace) {
		refusals = append(refusals, field.Forbidden(field.NewPath("metadata", "namespace"),
			"the namespaces of Kubernetes and of webhook and agents have no Applications: choose another one"))
	}
	if cm.Name == "kube-root-ca.crt" {
		refusals = append(refusals, field.Forbidden(field.NewPath("metadata", "name"),
			"Kubernetes keeps the ConfigMap of this name: choose another one"))
	}
	if ptr.Deref(cm.Immutable, false) {
		refusals = append(refusals, field.Forbidden(field.NewPath("immutable"),
			"the status of an Application is kept in the ConfigMap: leave immutable out"))
	}
	return slices.Concat(refusals, checkAnnotations(cm), checkData(cm))
}

func checkAnnotations(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	annotations := field.NewPath("metadata", "annotations")
	if format := cm.Annotations[application.FormatAnnotation]; format != application.Format {
		refusals = append(refusals, field.NotSupported(annotations.Key(application.FormatAnnotation),
			format, []string{application.Format}))
	}
	for _, problem := range validation.IsDNS1123Label(application.ClusterOf(cm)) {
		refusals = append(refusals, field.Invalid(annotations.Key(application.ClusterAnnotation),
			cm.Annotations[application.ClusterAnnotation], problem))
	}
	return append(refusals, checkServiceAccount(cm)...)
}

// checkServiceAccount refuses what is no name, and the account that every Pod of
// the namespace has: whoever gave it rights for an Application would give them
// to all of them.
func checkServiceAccount(cm *corev1.ConfigMap) field.ErrorList {
	account, named := cm.Annotations[application.ServiceAccountAnnotation]
	if !named {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(application.ServiceAccountAnnotation)
	if account == "default" {
		return field.ErrorList{field.Forbidden(path, "every Pod of the namespace acts as default: name an account of its own")}
	}
	if len(validation.IsDNS1123Subdomain(account)) > 0 {
		return field.ErrorList{field.Invalid(path, account, "it is no name: name a service account of the Application's namespace, or leave it out")}
	}
	return nil
}

// checkData refuses what an Application cannot do without, and what would be
// carried out by nobody: a key of the spec with a typing error.
func checkData(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	data := field.NewPath("data")
	if !hasSource(cm) {
		refusals = append(refusals, field.Required(data.Child(application.ManifestKey),
			"the manifest of the Application, as YAML or JSON, or in its place a TOSCA template as "+application.ToscaKey+" or an archive as "+application.CSARKey))
	}
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		if application.IsSpecKey(key) && !slices.Contains(application.SpecKeys(), key) {
			refusals = append(refusals, forbidden("data."+key, notAKey()))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		if application.IsSpecKey(key) && key != application.CSARKey {
			refusals = append(refusals, forbidden("binaryData."+key, notAKey()))
		}
	}
	return refusals
}

// hasSource tells if anything says which resources the Application has.
func hasSource(cm *corev1.ConfigMap) bool {
	_, manifest := cm.Data[application.ManifestKey]
	_, template := cm.Data[application.ToscaKey]
	_, archive := cm.Data[application.CSARKey]
	_, archived := cm.BinaryData[application.CSARKey]
	return manifest || template || archive || archived
}

func notAKey() string {
	return "the keys of a spec are " + inWords(application.SpecKeys()) + ", below data, and below binaryData " + application.CSARKey
}

// checkNewAnnotations refuses annotations of ours that nobody knows, which would
// be without effect: a cluster with a typing error in its key would be this one.
// What is stored already may be of another version of this program, and stays.
func checkNewAnnotations(cm, stored *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(cm.Annotations)) {
		former, had := stored.Annotations[name]
		if !manifest.IsReserved(name) || slices.Contains(application.UserAnnotations(), name) || had && former == cm.Annotations[name] {
			continue
		}
		refusals = append(refusals, field.Forbidden(field.NewPath("metadata", "annotations").Key(name),
			"no such annotation is known here: there are "+strings.Join(application.UserAnnotations(), ", ")))
	}
	return refusals
}

// checkWishes refuses annotations whose values nobody understands. One that is
// stored already stays, and counts as its default: it must not keep anybody from
// editing something else.
func checkWishes(cm, stored *corev1.ConfigMap) field.ErrorList {
	changed := maps.Clone(cm.Annotations)
	maps.DeleteFunc(changed, func(name, value string) bool {
		former, had := stored.Annotations[name]
		return had && former == value
	})
	_, refusals := application.WishesOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: changed}})
	_, asked := changed[application.ForceDeleteAnnotation]
	if asked || application.ClusterOf(cm) != application.ClusterOf(stored) {
		refusals = append(refusals, checkForceDelete(cm)...)
	}
	slices.SortFunc(refusals, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return refusals
}

// checkForceDelete refuses to give up the cluster where a living Application is:
// its agent would take it up again.
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

// checkSize refuses a spec that would leave no room for the status.
func checkSize(spec application.Spec) field.ErrorList {
	size := len(spec.Manifest) + len(spec.ObserverSchema) + len(spec.Tosca) + len(spec.CSAR)
	if size <= MaxSpecBytes {
		return nil
	}
	source, _ := spec.Source()
	keys := []string{source, application.ObserverSchemaKey}
	for key, text := range map[string]string{application.ToscaKey: spec.Tosca, application.CSARKey: spec.CSAR} {
		if text != "" && key != source {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys[2:])
	return field.ErrorList{invalid("data", fmt.Sprintf(
		"%s have %d bytes together, and at most %d are possible: split the Application", inWords(keys), size, MaxSpecBytes))}
}

// inWords gives "a, b and c".
func inWords(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Limits of a ConfigMap, as the API server has them.
const (
	maxDataBytes       = 1 << 20
	maxAnnotationBytes = 256 << 10
)

// checkRoom refuses a ConfigMap that the API server would refuse, in words that
// tell who has put in what, and one that has no room for the bytes to come: an
// agent that cannot record what it does would do it again and again.
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
			"the ConfigMap would have %d bytes: %d of yours, %d of status, and %d to come when the objects are observed; at most %d are possible: split the Application, or keep other data elsewhere",
			total, yours, ours, toCome, maxDataBytes)))
	}
	annotations := 0
	for name, value := range cm.Annotations {
		annotations += len(name) + len(value)
	}
	if annotations > maxAnnotationBytes {
		refusals = append(refusals, invalid("metadata.annotations", fmt.Sprintf(
			"they have %d bytes, and at most %d are possible: kubectl apply copies the whole ConfigMap into one, kubectl apply --server-side does not",
			annotations, maxAnnotationBytes)))
	}
	return refusals
}
