package habitat

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const customVersion = "customVersion"

// reservedName is the name whose Application would be that of the peer file.
const reservedName = "peers"

// Parse reads an object of a known custom version, and tells all of its mistakes, with
// the paths as the user wrote them. With mistakes, only the identity (name,
// namespace, UID, generation and custom version) is of use. That it is an object of the
// right kind and group, and its metadata but the name, is left to who read it.
func Parse(object map[string]any) (Habitat, field.ErrorList) {
	r := &reading{}
	root := r.root(object)
	h := Habitat{CustomVersion: CustomVersionOf(object)}
	r.identity(root, &h)
	root.take(customVersion)
	switch h.CustomVersion {
	case V1beta1:
		h.Spec = root.v1beta1()
	case V1beta2:
		h.Spec = root.v1beta2()
	default:
		r.add(field.NotSupported(field.NewPath(customVersion), shorten(h.CustomVersion), []string{V1beta1, V1beta2}))
		root.take("spec")
	}
	for _, name := range []string{"apiVersion", "kind", "status"} {
		root.take(name)
	}
	root.close()
	return h, r.mistakes
}

// identity reads the metadata.
func (r *reading) identity(root object, h *Habitat) {
	metadata, _ := root.child("metadata")
	h.Name = metadata.required("name", habitatName())
	if h.Name == reservedName {
		r.add(field.Invalid(metadata.at("name"), h.Name, "the ConfigMap habitat-peers is that of the peer file: choose another name"))
	}
	h.Namespace, _ = metadata.text("namespace")
	uid, _ := metadata.text("uid")
	h.UID = types.UID(uid)
	h.Generation, _ = metadata.fields["generation"].(int64)
}

// v1beta2 reads the fields below spec.v1beta2.
func (o object) v1beta2() Spec {
	spec, _ := o.child("spec")
	below, ok := spec.requiredChild(V1beta2, "customVersion v1beta2 has its fields there")
	for _, name := range []string{"count", "image", "env", "persistentStorage", "updateStrategy", "service"} {
		spec.refuse(name, "customVersion v1beta2 has it below spec.v1beta2: move it there")
	}
	spec.close()
	if !ok {
		return Spec{}
	}
	read := Spec{Count: below.count("count"), Image: below.required("image", image()), Env: below.env()}
	if service, ok := below.requiredChild("service", wantedService); ok {
		read.Service = service.service()
		read.Service.Channel = service.optional("channel", argument())
		read.Service.FilesSecret = service.optional("filesSecretName", secretName())
		service.close()
	}
	read.Storage = below.storage(read.Service.Name)
	read.UpdateStrategy = below.updateStrategy(read.Service.Topology)
	below.close()
	return read
}

// v1beta1 reads the fields directly below spec.
func (o object) v1beta1() Spec {
	o.emptyIsUnset = true
	spec, ok := o.requiredChild("spec", "what the Habitat is to be")
	switch {
	case !ok:
		return Spec{}
	case spec.has(V1beta2):
		o.add(field.Forbidden(spec.at(V1beta2), "customVersion v1beta1, which is also that of a Habitat without one, has its fields directly below spec: set customVersion: v1beta2"))
		return Spec{}
	}
	read := Spec{Count: spec.count("count"), Image: spec.required("image", image()), Env: spec.env()}
	if service, ok := spec.requiredChild("service", wantedService); ok {
		read.Service = service.service()
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

const (
	wantedService = "the service, with name and topology"
	onlyV1beta2   = "only customVersion v1beta2 has it: set customVersion: v1beta2, and move the fields below spec.v1beta2"
)

// service reads what both custom versions have.
func (o object) service() Service {
	return Service{
		Name:         o.required("name", serviceName()),
		Topology:     o.required("topology", topology()),
		Group:        o.optional("group", argument()),
		ConfigSecret: o.optional("configSecretName", secretName()),
		RingSecret:   o.optional("ringSecretName", ringSecretName()),
		Binds:        o.binds(),
	}
}

func (o object) binds() []Bind {
	var binds []Bind
	first := map[string]int{}
	for i, item := range o.list("bind", maxBinds) {
		bind, ok := o.object(o.at("bind").Index(i), item)
		if !ok {
			o.nullItem(bind.path, item)
			continue
		}
		read := Bind{bind.required("name", bindName()), bind.required("service", bindService()), bind.required("group", bindGroup())}
		bind.close()
		if before, twice := first[read.Name]; twice && read.Name != "" {
			o.add(field.Invalid(bind.at("name"), shorten(read.Name), fmt.Sprintf("bind[%d] has the same name: names of binds have to differ", before)))
		} else {
			first[read.Name] = i
		}
		binds = append(binds, read)
	}
	return binds
}

// storage reads the claim of each Pod, which is mounted beside what a service has.
func (o object) storage(service string) *Storage {
	claim, ok := o.child("persistentStorage")
	if !ok {
		return nil
	}
	read := &Storage{MountPath: claim.required("mountPath", mountPath(service)), StorageClass: claim.optional("storageClassName", storageClass())}
	read.Size, _ = canonical(claim.required("size", size()))
	claim.close()
	return read
}

func (o object) updateStrategy(topology string) string {
	const name = "updateStrategy"
	strategy, given := o.text(name)
	if !given {
		return RollingUpdate
	}
	o.check(o.at(name), strategy, updateStrategy())
	if strategy == OnDelete && topology == Standalone {
		o.add(field.Invalid(o.at(name), strategy, "only topology leader can have it, whose Pods elect a new leader together: leave it out"))
	}
	return strategy
}
