package mutate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Prepared is the result of admission for a request.
type Prepared struct {
	// Refusals are the reasons why the request is not admitted. The ConfigMap must not be used
	// then. Warnings are for the user in any case.
	Refusals field.ErrorList
	Warnings []string
	// Signable reports that the webhook may sign the Application once it is confined and authorized: it was
	// admitted before with the same intent, or all of it was checked.
	Signable bool
	// Checked reports that the spec was checked, and has to be confined and authorized. Wanted are
	// the identities of its resources in their order, empty for a resource without one. Former are
	// those of the stored spec.
	Checked        bool
	Wanted, Former []manifest.ID
	// Held are the objects in the stored inventories.
	Held []manifest.ID
	// Resources is the first last applied manifest, in the order of Wanted. It is nil if there are
	// refusals, or if only the agent knows the resources.
	Resources []map[string]any
	// Spec is the checked spec. URL is the source of its resources if they are behind a URL, which
	// only the agent fetches.
	Spec application.Spec
	URL  string
}

// PrepareForCreate completes a ConfigMap that a user creates as an Application, or turns into one.
// It drops the status of the request, and computes the documents. ended returns why the request has ended,
// and nil before. The computation then stops between two steps, with a refusal.
func PrepareForCreate(ended func() error, cm *corev1.ConfigMap) Prepared {
	none := &corev1.ConfigMap{}
	return withStatusOf(none, cm, func() Prepared { return publish(ended, cm, none, nil) })
}

// PrepareForUpdate completes a user's update of a ConfigMap of which at least one version is an
// Application. The status is the stored one. The documents are computed again only after a change
// of the spec, or of another part that requires rights of the user. admitted reports that the stored
// version was admitted, as its signature proves.
func PrepareForUpdate(ended func() error, cm, stored *corev1.ConfigMap, admitted bool) Prepared {
	if !application.IsApplication(stored) {
		return PrepareForCreate(ended, cm)
	}
	if !application.IsApplication(cm) {
		return Prepared{Refusals: field.ErrorList{forbidden(annotationPath(application.FormatAnnotation),
			"an Application cannot be turned back into a plain ConfigMap: delete it")}}
	}
	return withStatusOf(stored, cm, func() Prepared { return prepareChange(ended, cm, stored, admitted) })
}

// withStatusOf prepares a request with the stored status instead of its own, and warns of the
// dropped status. A status that equals the stored one causes no warning, because kubectl edit sends
// it.
func withStatusOf(stored, cm *corev1.ConfigMap, prepare func() Prepared) Prepared {
	brought, kept := statusOf(cm), statusOf(stored)
	maps.DeleteFunc(brought, func(place, value string) bool {
		former, ok := kept[place]
		return ok && former == value
	})
	takeStatus(cm, stored)
	prepared := prepare()
	prepared.Warnings = append(ignored(brought, cm), prepared.Warnings...)
	return prepared
}

// prepareChange prepares an update of an Application that stays one, with the stored status.
func prepareChange(ended func() error, cm, stored *corev1.ConfigMap, admitted bool) Prepared {
	// The request may contain a deletion that the API server does not store.
	deleting := !stored.DeletionTimestamp.IsZero()
	left := giveUp(cm, deleting)
	if deleting {
		return Prepared{Warnings: left}
	}
	if unchanged(cm, stored, admitted) {
		return Prepared{Refusals: slices.Concat(checkSettings(cm, stored), checkRoom(cm, 0)), Warnings: left, Signable: admitted}
	}
	learned, err := application.LearnedOf(stored, application.ClusterOf(cm))
	if err != nil {
		return Prepared{Refusals: field.ErrorList{invalid("data", err.Error())}}
	}
	prepared := publish(ended, cm, stored, learned)
	prepared.Warnings = append(left, prepared.Warnings...)
	return prepared
}

// Named returns the identities of the objects in the text of a request, empty for a resource without
// one. It computes nothing of them, so that rights can be asked first. There are none if nothing would
// be computed, if the text cannot be read, or if only the agent knows the resources.
func Named(cm, stored *corev1.ConfigMap, admitted bool) []manifest.ID {
	if !application.IsApplication(cm) || !stored.DeletionTimestamp.IsZero() || application.IsApplication(stored) && unchanged(cm, stored, admitted) {
		return nil
	}
	spec := application.SpecOf(cm)
	if len(checkSize(spec)) > 0 {
		return nil
	}
	resources, err := resourcesOf(spec)
	if err != nil {
		return nil // the computation ends at the same place, with the refusal
	}
	return identities(objectsOf(resources))
}

// unchanged reports whether an agent would carry out the same. No rights are then reviewed, and a
// new version of this program rewrites nothing. Any edit of an Application that was never admitted
// is a change. Only a change of links between objects is none, because the garbage collector makes
// those.
func unchanged(cm, stored *corev1.ConfigMap, admitted bool) bool {
	if !admitted {
		return onlyLinksChanged(cm, stored)
	}
	return maps.Equal(application.Intent(cm), application.Intent(stored)) && !ptr.Deref(cm.Immutable, false)
}

func onlyLinksChanged(cm, stored *corev1.ConfigMap) bool {
	linked := equality.Semantic.DeepEqual(cm.OwnerReferences, stored.OwnerReferences) && slices.Equal(cm.Finalizers, stored.Finalizers)
	return !linked &&
		maps.Equal(cm.Data, stored.Data) && maps.EqualFunc(cm.BinaryData, stored.BinaryData, slices.Equal) &&
		maps.Equal(cm.Labels, stored.Labels) && maps.Equal(cm.Annotations, stored.Annotations)
}

// giveUp drops what protects the Application for clusters that the user gives up. It warns of the
// objects that stay there, which no agent will report.
func giveUp(cm *corev1.ConfigMap, deleting bool) []string {
	var warnings []string
	for _, cluster := range application.GivenUp(cm, deleting) {
		for _, names := range inLines(application.GiveUp(cm, cluster)) {
			warnings = append(warnings, "left unchanged on cluster "+cluster+", which is given up: "+names)
		}
	}
	return warnings
}

// inLines returns the names of objects in a few lines, each short enough for a warning.
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

func publish(ended func() error, cm, stored *corev1.ConfigMap, learned []map[string]any) Prepared {
	refusals := slices.Concat(checkConfigMap(cm), checkNewAnnotations(cm, stored), checkSettings(cm, stored))
	if !hasSource(cm) {
		return Prepared{Refusals: atMost(refusals)} // without resources, the observer schema would be refused too
	}
	spec := application.SpecOf(cm)
	former, err := formerOf(stored)
	if err != nil {
		refusals = append(refusals, invalid("data", err.Error()))
	}
	held, _ := application.HeldBy(stored) // the agent reports an unreadable inventory
	prepared := Prepared{Refusals: refusals, Warnings: unused(spec), Checked: true, Signable: true, Former: former, Held: held, Spec: spec}
	if source, isURL, refusal := SourceOf(spec); isURL {
		prepared.URL = source.URL
		prepared.publishUnfetched(cm, stored, refusal)
	} else {
		prepared.publishDesired(ended, cm, learned)
	}
	return prepared
}

func unused(spec application.Spec) []string {
	source, _ := spec.Source()
	var warnings []string
	for _, key := range unusedSources(spec) {
		warnings = append(warnings, "data."+key+": it has no effect: "+source+" defines the resources: leave one of the two out")
	}
	return warnings
}

// publishUnfetched leaves the documents to the agent, which fetches the content of the URL.
func (p *Prepared) publishUnfetched(cm, stored *corev1.ConfigMap, refusal *field.Error) {
	if refusal != nil {
		p.Refusals = append(p.Refusals, refusal)
	}
	p.Refusals = atMost(slices.Concat(p.Refusals, checkSize(p.Spec)))
	if len(p.Refusals) == 0 {
		application.PublishUnfetched(cm, stored)
	}
}

func (p *Prepared) publishDesired(ended func() error, cm *corev1.ConfigMap, learned []map[string]any) {
	desired, warnings, refusals := desiredOf(ended, p.Spec, learned)
	p.Wanted = identities(desired.Manifest)
	warnings = append(warnings, suspectDeletion(cm, p.Wanted)...)
	refusals = slices.Concat(refusals, checkItself(cm, p.Wanted), checkValuesFrom(cm, p.Wanted[:len(p.Wanted)-len(desired.Secrets)]))
	p.Refusals = atMost(slices.Concat(p.Refusals, Relocate(refusals, p.Spec)))
	p.Warnings = append(p.Warnings, RelocateTexts(warnings, p.Spec)...)
	if len(p.Refusals) > 0 {
		return
	}
	documents := application.Documents{Translated: desired.Translated, Mangled: desired.Mangled.Documents(), Applied: desired.Resources}
	if err := application.Publish(cm, documents); err != nil {
		p.Refusals = field.ErrorList{field.InternalError(field.NewPath("data"), err)}
		return
	}
	p.Resources = desired.Resources
	// The observed fields will be about as large as the applied ones.
	p.Refusals = checkRoom(cm, max(0, sizeOf(cm, application.LastAppliedKey)-sizeOf(cm, application.LastObservedKey)))
}

// desiredOf returns the desired state, with warnings and refusals. If there are refusals, only the
// manifest is complete.
func desiredOf(ended func() error, spec application.Spec, learned []map[string]any) (Desired, []string, field.ErrorList) {
	d := read(spec, ended)
	warnings, refusals := checkTypes(d.Manifest)
	if refusals = slices.Concat(d.refusals, refusals); len(refusals) > 0 {
		return d.Desired, slices.Concat(d.warnings, warnings), refusals
	}
	if refusals := d.desire(learned, ended); len(refusals) > 0 {
		return d.Desired, nil, refusals
	}
	return d.Desired, slices.Concat(d.warnings, suspect(d.Desired), warnings), nil
}

func sizeOf(cm *corev1.ConfigMap, key string) int { return len(cm.Data[key]) + len(cm.BinaryData[key]) }

// formerOf returns the identities of the resources of a stored and admitted spec. Another version
// of this program may have admitted a spec that this one cannot read. Then it returns the
// inventories of the agents, which would delete these objects.
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
