package mutate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Prepared is what admission has made of a request.
type Prepared struct {
	// Refusals say why the request is not admitted: the ConfigMap is not to be
	// used then. Warnings are for the user in any case.
	Refusals field.ErrorList
	Warnings []string
	// Checked tells that the spec was looked at, and that it has to be confined
	// and authorised: Wanted are the identities of its resources, in the order of
	// the manifest, and empty for one that has none; Former those of the stored
	// spec.
	Checked        bool
	Wanted, Former []manifest.ID
	// Spec is what was looked at, and URL the source of its resources, if they are
	// behind one: what they are, its agent will see.
	Spec application.Spec
	URL  string
}

// PrepareForCreate completes a ConfigMap that a user creates as an Application,
// or makes one by annotating it: status that it brings is thrown away, the
// status documents are computed.
func PrepareForCreate(cm *corev1.ConfigMap) Prepared {
	none := &corev1.ConfigMap{}
	return withStatusOf(none, cm, func() Prepared { return publish(cm, none, nil) })
}

// PrepareForUpdate completes a user's update of a ConfigMap of which at least
// one version is an Application. Its status is the stored one; the documents
// are computed again only if the spec changed, or something else that needs the
// user's authority.
func PrepareForUpdate(cm, stored *corev1.ConfigMap) Prepared {
	if !application.IsApplication(stored) {
		return PrepareForCreate(cm)
	}
	if !application.IsApplication(cm) {
		return Prepared{Refusals: field.ErrorList{field.Forbidden(
			field.NewPath("metadata", "annotations").Key(application.FormatAnnotation),
			"an Application cannot be turned back into a plain ConfigMap: delete it")}}
	}
	return withStatusOf(stored, cm, func() Prepared { return prepareChange(cm, stored) })
}

// withStatusOf prepares a request with the stored status in place of its own,
// and warns of what that leaves out.
func withStatusOf(stored, cm *corev1.ConfigMap, prepare func() Prepared) Prepared {
	brought, kept := statusOf(cm), statusOf(stored)
	maps.DeleteFunc(brought, func(place, value string) bool { // sent back by kubectl edit, while the spec changes
		former, ok := kept[place]
		return ok && former == value
	})
	dropStatus(cm)
	keepStatus(cm, stored)
	prepared := prepare()
	prepared.Warnings = append(ignored(brought, cm), prepared.Warnings...)
	return prepared
}

// prepareChange prepares an update of an Application that stays one, with the
// stored status.
func prepareChange(cm, stored *corev1.ConfigMap) Prepared {
	// What the request says of its deletion is not yet what the API server will store.
	deleting := !stored.DeletionTimestamp.IsZero()
	left := giveUp(cm, deleting)
	if deleting {
		return Prepared{Warnings: left}
	}
	if unchanged(cm, stored) {
		return Prepared{Refusals: slices.Concat(checkWishes(cm, stored), checkRoom(cm, 0)), Warnings: left}
	}
	learned, err := application.LearnedOf(stored, application.ClusterOf(cm))
	if err != nil {
		return Prepared{Refusals: field.ErrorList{invalid("data", err.Error())}}
	}
	prepared := publish(cm, stored, learned)
	prepared.Warnings = append(left, prepared.Warnings...)
	return prepared
}

// giveUp drops what keeps the Application for clusters that the user gives up, and
// warns of what is left there: nobody else will tell of it.
func giveUp(cm *corev1.ConfigMap, deleting bool) []string {
	var warnings []string
	for _, cluster := range application.GivenUp(cm, deleting) {
		for _, names := range inLines(application.GiveUp(cm, cluster)) {
			warnings = append(warnings, "left as it is on cluster "+cluster+", which is given up: "+names)
		}
	}
	return warnings
}

// inLines names objects in lines that are short enough for a warning, and in not
// too many.
func inLines(ids []manifest.ID) []string {
	const long, many = 150, 10
	var lines []string
	for i, id := range ids {
		name := id.String()
		switch last := len(lines) - 1; {
		case last >= 0 && len(lines[last])+len(name) < long:
			lines[last] += ", " + name
		case len(lines) == many:
			lines[last] += fmt.Sprintf(", and %d more", len(ids)-i)
			return lines
		default:
			lines = append(lines, name)
		}
	}
	return lines
}

// unchanged tells if nothing of what an agent carries out differs, so that a new
// version of this program rewrites nothing by itself and nobody's authority is
// asked for. What was never admitted is by any edit, but for those of links
// between objects: the garbage collector makes them, with rights of its own.
func unchanged(cm, stored *corev1.ConfigMap) bool {
	if !application.IsAdmitted(stored) {
		return onlyLinksChanged(cm, stored)
	}
	return maps.Equal(intent(cm), intent(stored)) && !ptr.Deref(cm.Immutable, false)
}

func onlyLinksChanged(cm, stored *corev1.ConfigMap) bool {
	linked := equality.Semantic.DeepEqual(cm.OwnerReferences, stored.OwnerReferences) && slices.Equal(cm.Finalizers, stored.Finalizers)
	return !linked &&
		maps.Equal(cm.Data, stored.Data) && maps.EqualFunc(cm.BinaryData, stored.BinaryData, slices.Equal) &&
		maps.Equal(cm.Labels, stored.Labels) && maps.Equal(cm.Annotations, stored.Annotations)
}

// intent is what an agent carries out: the keys of the spec and our annotations,
// but for those that only hold it back. Whoever takes such a one away asks for
// nothing more than what was admitted.
func intent(cm *corev1.ConfigMap) map[string]string {
	intent := map[string]string{}
	for key, value := range cm.Data {
		if application.IsSpecKey(key) {
			intent[key] = value
		}
	}
	for key, value := range cm.BinaryData {
		if application.IsSpecKey(key) {
			intent["binary "+key] = string(value)
		}
	}
	for name, value := range cm.Annotations {
		if manifest.IsReserved(name) && !holdsBack(name) {
			intent[name] = value
		}
	}
	return intent
}

// holdsBack tells of annotations of ours that have an agent do less than it would.
func holdsBack(annotation string) bool {
	switch annotation {
	case application.ForceDeleteAnnotation, application.ModeAnnotation, application.HoldUntilAnnotation, application.HoldAnnotation:
		return true
	}
	return false
}

func publish(cm, stored *corev1.ConfigMap, learned []map[string]any) Prepared {
	refusals := slices.Concat(checkConfigMap(cm), checkNewAnnotations(cm, stored), checkWishes(cm, stored))
	if !hasSource(cm) {
		return Prepared{Refusals: atMost(refusals)} // an observer schema of nothing would be wrong as well
	}
	spec := application.SpecOf(cm)
	former, err := formerOf(stored)
	if err != nil {
		refusals = append(refusals, invalid("data", err.Error()))
	}
	prepared := Prepared{Refusals: refusals, Warnings: unused(spec), Checked: true, Former: former, Spec: spec}
	if source, isURL, refusal := SourceOf(spec); isURL {
		prepared.URL = source.URL
		return publishUnfetched(cm, stored, prepared, refusal)
	}
	return publishDesired(cm, prepared, learned)
}

// unused warns of sources that are without effect: one says what the resources are.
func unused(spec application.Spec) []string {
	key, _ := spec.Source()
	var warnings []string
	for _, other := range []struct{ key, text string }{{application.ToscaKey, spec.Tosca}, {application.CSARKey, spec.CSAR}} {
		if other.text != "" && other.key != key {
			warnings = append(warnings, "data."+other.key+": it is without effect: "+key+" says what the resources are: leave one of the two out")
		}
	}
	return warnings
}

// publishUnfetched leaves the documents to the agent, who will see what is behind
// the URL.
func publishUnfetched(cm, stored *corev1.ConfigMap, prepared Prepared, refusal *field.Error) Prepared {
	if refusal != nil {
		prepared.Refusals = append(prepared.Refusals, refusal)
	}
	prepared.Refusals = atMost(slices.Concat(prepared.Refusals, checkSize(prepared.Spec)))
	if len(prepared.Refusals) == 0 {
		application.PublishUnfetched(cm, stored)
	}
	return prepared
}

func publishDesired(cm *corev1.ConfigMap, prepared Prepared, learned []map[string]any) Prepared {
	draft := read(prepared.Spec)
	desired, warnings, wrong := prepare(&draft, learned)
	prepared.Refusals = atMost(slices.Concat(prepared.Refusals, Relocate(wrong, prepared.Spec)))
	prepared.Warnings = append(prepared.Warnings, RelocateTexts(warnings, prepared.Spec)...)
	prepared.Wanted = identities(draft.resources)
	if len(prepared.Refusals) > 0 {
		return prepared
	}
	documents := application.Documents{Translated: desired.Translated, Mangled: desired.Mangled.Documents(), Applied: desired.Resources}
	if err := application.Publish(cm, documents); err != nil {
		prepared.Refusals = field.ErrorList{field.InternalError(field.NewPath("data"), err)}
		return prepared
	}
	// What is observed will be about as much as what is applied.
	prepared.Refusals = checkRoom(cm, max(0, sizeOf(cm, application.LastAppliedKey)-sizeOf(cm, application.LastObservedKey)))
	return prepared
}

func sizeOf(cm *corev1.ConfigMap, key string) int { return len(cm.Data[key]) + len(cm.BinaryData[key]) }

// formerOf gives the identities of a stored spec that was admitted. Another
// version of this program may have admitted what cannot be read any more: then
// they are those of what the agents hold, which they would delete.
func formerOf(stored *corev1.ConfigMap) ([]manifest.ID, error) {
	if !application.IsAdmitted(stored) {
		return nil, nil
	}
	spec := application.SpecOf(stored)
	resources, err := resourcesOf(spec)
	if err != nil {
		return application.HeldBy(stored)
	}
	injection, refusals := inject(spec.Hooks, objectsOf(resources), nil)
	if len(refusals) > 0 {
		return application.HeldBy(stored)
	}
	return identities(injection.resources), nil
}

// identities are those of the resources, empty for one that has none.
func identities(resources []map[string]any) []manifest.ID {
	ids := make([]manifest.ID, len(resources))
	for i, resource := range resources {
		if id, err := manifest.Identify(resource); err == nil {
			ids[i] = id
		}
	}
	return ids
}

// prepare computes the desired state, and what is wrong or suspicious about it.
func prepare(draft *draft, learned []map[string]any) (Desired, []string, field.ErrorList) {
	warnings, refusals := checkTypes(draft.resources)
	refusals = slices.Concat(draft.refusals, refusals)
	if len(refusals) > 0 {
		return Desired{}, slices.Concat(draft.warnings, warnings), refusals
	}
	desired, refusals := draft.desire(learned)
	if len(refusals) > 0 {
		return Desired{}, nil, refusals
	}
	return desired, slices.Concat(suspect(draft, desired), warnings), nil
}

// statusOf gives what webhook and agents write, by its place.
func statusOf(cm *corev1.ConfigMap) map[string]string {
	status := map[string]string{}
	for key, value := range cm.Data {
		if application.IsStatusKey(key) {
			status["data."+key] = value
		}
	}
	for key, value := range cm.BinaryData {
		if application.IsStatusKey(key) {
			status["binaryData."+key] = string(value)
		}
	}
	for label, value := range cm.Labels {
		if application.IsStatusLabel(label) {
			status["metadata.labels["+label+"]"] = value
		}
	}
	for _, finalizer := range cm.Finalizers {
		if application.IsOurFinalizer(finalizer) {
			status["metadata.finalizers["+finalizer+"]"] = ""
		}
	}
	return status
}

// ignored warns of status that a request has brought and that is not what will
// be stored: kubectl says that it was set.
func ignored(brought map[string]string, cm *corev1.ConfigMap) []string {
	status := statusOf(cm)
	var places []string
	for _, place := range slices.Sorted(maps.Keys(brought)) {
		if value, ok := status[place]; !ok || value != brought[place] {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return nil
	}
	const most = 3
	if more := len(places) - most; more > 0 {
		places = append(places[:most], fmt.Sprintf("%d more", more))
	}
	return []string{strings.Join(places, ", ") + ": only webhook and agents write it, so that what the request says of it is without effect"}
}

// dropStatus removes everything that only the webhook and the agents write.
func dropStatus(cm *corev1.ConfigMap) {
	maps.DeleteFunc(cm.Data, func(key, _ string) bool { return application.IsStatusKey(key) })
	maps.DeleteFunc(cm.BinaryData, func(key string, _ []byte) bool { return application.IsStatusKey(key) })
	maps.DeleteFunc(cm.Labels, func(label, _ string) bool { return application.IsStatusLabel(label) })
	cm.Finalizers = slices.DeleteFunc(cm.Finalizers, application.IsOurFinalizer)
}

// keepStatus takes over what webhook and agents wrote into the stored object.
func keepStatus(cm, stored *corev1.ConfigMap) {
	cm.Data = keep(cm.Data, stored.Data, application.IsStatusKey)
	cm.BinaryData = keep(cm.BinaryData, stored.BinaryData, application.IsStatusKey)
	cm.Labels = keep(cm.Labels, stored.Labels, application.IsStatusLabel)
	for _, finalizer := range stored.Finalizers {
		if application.IsOurFinalizer(finalizer) {
			cm.Finalizers = append(cm.Finalizers, finalizer)
		}
	}
	slices.SortStableFunc(cm.Finalizers, func(a, b string) int { // the stored order, so that a mere re-sending changes nothing
		return slices.Index(stored.Finalizers, a) - slices.Index(stored.Finalizers, b)
	})
}

func keep[V any](into, from map[string]V, ours func(string) bool) map[string]V {
	for key, value := range from {
		if !ours(key) {
			continue
		}
		if into == nil {
			into = map[string]V{}
		}
		into[key] = value
	}
	return into
}
