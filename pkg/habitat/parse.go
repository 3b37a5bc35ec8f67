package habitat

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reservedName is the Habitat name whose Application would have the name of the peer file's
// Application.
const reservedName = "peers"

const (
	wantedService = "the service, with name and topology"
	onlyV1beta2   = "only customVersion v1beta2 has it: set customVersion: v1beta2, and move the fields below spec.v1beta2"
)

// Parse reads an object of a known custom version, and returns all of its mistakes, with
// the paths in the user's object. With mistakes, use only the identity: name, namespace,
// UID, generation and custom version. The caller checks kind and group, and the metadata
// other than the name.
func Parse(content map[string]any) (Habitat, field.ErrorList) {
	root := object{reading: &reading{}, fields: content, taken: map[string]bool{}}
	h := Habitat{CustomVersion: CustomVersionOf(content)}
	readIdentity(root, &h)
	root.take(customVersion)
	switch h.CustomVersion {
	case V1beta1:
		h.Spec = v1beta1(root)
	case V1beta2:
		h.Spec = v1beta2(root)
	default:
		root.add(field.NotSupported(field.NewPath(customVersion), shorten(h.CustomVersion), []string{V1beta1, V1beta2}))
		root.take("spec")
	}
	for _, name := range []string{"apiVersion", "kind", "status"} {
		root.take(name)
	}
	root.close()
	return h, root.mistakes
}

func readIdentity(root object, h *Habitat) {
	metadata, _ := root.child("metadata")
	h.Name = metadata.required("name", nameText)
	if h.Name == reservedName {
		root.add(field.Invalid(metadata.at("name"), h.Name, "the ConfigMap habitat-peers is that of the peer file: choose another name"))
	}
	h.Namespace, _ = metadata.text("namespace")
	uid, _ := metadata.text("uid")
	h.UID = types.UID(uid)
	h.Generation, _ = metadata.fields["generation"].(int64)
}

// v1beta2 reads the fields below spec.v1beta2.
func v1beta2(root object) Spec {
	top, _ := root.child("spec")
	spec, ok := top.requiredChild(V1beta2, "customVersion v1beta2 has its fields there")
	for _, name := range []string{"count", "image", "env", "persistentStorage", "updateStrategy", "service"} {
		top.refuse(name, "customVersion v1beta2 has it below spec.v1beta2: move it there")
	}
	top.close()
	if !ok {
		return Spec{}
	}
	read := Spec{Count: spec.count("count"), Image: spec.required("image", imageText), Env: environment(spec)}
	if service, ok := spec.requiredChild("service", wantedService); ok {
		read.Service = readService(service)
		read.Service.Channel = service.optional("channel", argumentText)
		read.Service.FilesSecret = service.optional("filesSecretName", secretText)
		service.close()
	}
	read.Storage = readStorage(spec, read.Service.Name)
	read.UpdateStrategy = readStrategy(spec, read.Service.Topology)
	spec.close()
	return read
}

// v1beta1 reads the fields directly below spec.
func v1beta1(root object) Spec {
	root.emptyIsUnset = true
	spec, ok := root.requiredChild("spec", "the desired state of the Habitat")
	switch {
	case !ok:
		return Spec{}
	case spec.has(V1beta2):
		root.add(field.Forbidden(spec.at(V1beta2), "customVersion v1beta1, which is also that of a Habitat without one, has its fields directly below spec: set customVersion: v1beta2"))
		return Spec{}
	}
	read := Spec{Count: spec.count("count"), Image: spec.required("image", imageText), Env: environment(spec)}
	if service, ok := spec.requiredChild("service", wantedService); ok {
		read.Service = readService(service)
		for _, name := range []string{"channel", "filesSecretName"} {
			service.refuse(name, onlyV1beta2)
		}
		service.close()
	}
	for _, name := range []string{"persistentStorage", "updateStrategy"} {
		spec.refuse(name, onlyV1beta2)
	}
	spec.close()
	return read
}

// readService reads the fields that both custom versions have.
func readService(service object) Service {
	return Service{
		Name:         service.required("name", serviceText),
		Topology:     service.required("topology", topologyText),
		Group:        service.optional("group", argumentText),
		ConfigSecret: service.optional("configSecretName", secretText),
		RingSecret:   service.optional("ringSecretName", ringText),
		Binds:        readBinds(service),
	}
}

func readBinds(service object) []Bind {
	var binds []Bind
	first := map[string]int{}
	for i, bind := range service.objects("bind", maxBinds) {
		read := Bind{bind.required("name", bindText), bind.required("service", bindServiceText), bind.required("group", bindGroupText)}
		bind.close()
		if before, twice := first[read.Name]; twice && read.Name != "" {
			bind.add(field.Invalid(bind.at("name"), shorten(read.Name), fmt.Sprintf("bind[%d] has the same name: names of binds have to differ", before)))
		} else {
			first[read.Name] = i
		}
		binds = append(binds, read)
	}
	return binds
}

// readStorage reads the claim of each Pod of a service.
func readStorage(spec object, service string) *Storage {
	claim, ok := spec.child("persistentStorage")
	if !ok {
		return nil
	}
	read := &Storage{MountPath: claim.required("mountPath", mountPathText(service)), StorageClass: claim.optional("storageClassName", classText)}
	read.Size, _ = canonical(claim.required("size", sizeText))
	claim.close()
	return read
}

func readStrategy(spec object, topology string) string {
	const name = "updateStrategy"
	strategy, given := spec.text(name)
	if !given {
		return RollingUpdate
	}
	spec.check(spec.at(name), strategy, strategyText)
	if strategy == OnDelete && topology == Standalone {
		spec.add(field.Invalid(spec.at(name), strategy, "only topology leader can have it, whose Pods elect a new leader together: leave it out"))
	}
	return strategy
}
