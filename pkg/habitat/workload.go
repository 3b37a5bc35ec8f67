package habitat

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// What is in the Pods.
const (
	serviceContainer = "habitat-service"
	filesContainer   = "copy-files"

	configVolume      = "config"
	userConfigVolume  = "user-config"
	filesSecretVolume = "files-secrets"
	filesVolume       = "files"
	claimVolume       = "persistent"

	peerFolder  = "/habitat-operator"
	peerPath    = "peer-ip"
	keysFolder  = "/hab/cache/keys"
	filesSource = "/mnt/files"

	configKey = "user.toml"
	ringKey   = "ring-key"
)

func configFolder(service string) string { return "/hab/user/" + service + "/config" }
func filesFolder(service string) string  { return "/hab/svc/" + service + "/files" }

// Workload gives the StatefulSet of [V1beta2], or the Deployment of [V1beta1], with
// namespace and without owner. The image is that of the init container which copies
// files. Each call gives an object of its own.
//
// What a user did not ask for is not in it, so that whoever wants to may set it:
// resources, probes, affinity.
func (h Habitat) Workload(filesImage string) map[string]any {
	if h.CustomVersion == V1beta2 {
		return h.statefulSet(filesImage)
	}
	return map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"name": h.Name, "namespace": h.Namespace},
		"spec": map[string]any{
			"replicas": int64(h.Spec.Count),
			"selector": h.selector(),
			"template": h.template(filesImage, map[string]any{deprecatedTopologyLabel: h.Spec.Service.Topology}),
		},
	}
}

func (h Habitat) statefulSet(filesImage string) map[string]any {
	spec := map[string]any{
		"replicas":            int64(h.Spec.Count),
		"podManagementPolicy": "Parallel",
		"selector":            h.selector(),
		"updateStrategy":      map[string]any{"type": h.Spec.UpdateStrategy},
		"template": h.template(filesImage, map[string]any{
			TopologyLabel:           h.Spec.Service.Topology,
			deprecatedTopologyLabel: h.Spec.Service.Topology,
		}),
	}
	if storage := h.Spec.Storage; storage != nil {
		spec["volumeClaimTemplates"] = []any{map[string]any{
			"metadata": map[string]any{"name": claimVolume, "namespace": h.Namespace, "labels": h.labels()},
			"spec": map[string]any{
				"accessModes":      []any{"ReadWriteOnce"},
				"storageClassName": storage.StorageClass,
				"resources":        map[string]any{"requests": map[string]any{"storage": storage.Size}},
			},
		}}
	}
	return map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "StatefulSet",
		"metadata":   map[string]any{"name": h.Name, "namespace": h.Namespace, "labels": h.labels()},
		"spec":       spec,
	}
}

func (h Habitat) labels() map[string]any { return map[string]any{Label: "true", NameLabel: h.Name} }

func (h Habitat) selector() map[string]any {
	return map[string]any{"matchLabels": map[string]any{NameLabel: h.Name}}
}

// template gives the Pods, with more labels than those of all that is generated.
func (h Habitat) template(filesImage string, more map[string]any) map[string]any {
	labels := h.labels()
	maps.Copy(labels, more)
	container := map[string]any{
		"name":         serviceContainer,
		"image":        h.Spec.Image,
		"args":         h.arguments(),
		"volumeMounts": h.mounts(),
	}
	if len(h.Spec.Env) > 0 {
		container["env"] = runtime.DeepCopyJSONValue(h.Spec.Env)
	}
	spec := map[string]any{"containers": []any{container}, "volumes": h.volumes()}
	if h.Spec.Service.FilesSecret != "" {
		spec["initContainers"] = []any{h.copyFiles(filesImage)}
	}
	return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}
}

// arguments gives those of the supervisor. Their order matters to nobody but to the
// template, of which another order would be another one.
func (h Habitat) arguments() []any {
	service := h.Spec.Service
	var arguments []any
	add := func(flag, value string) {
		if value != "" {
			arguments = append(arguments, flag, value)
		}
	}
	add("--group", service.Group)
	add("--channel", service.Channel)
	add("--topology", service.Topology)
	add("--peer-watch-file", peerFolder+"/"+peerPath)
	for _, bind := range service.Binds {
		add("--bind", bind.Name+":"+bind.Service+"."+bind.Group)
	}
	add("--ring", ringOf(service.RingSecret))
	return arguments
}

// ringOf gives the name of a ring, which the name of its Secret has before the revision.
func ringOf(secret string) string {
	return secret[:max(0, strings.LastIndex(secret, "-"))]
}

func (h Habitat) volumes() []any {
	service := h.Spec.Service
	volumes := []any{map[string]any{"name": configVolume, "configMap": map[string]any{"name": PeerFile, "items": item(PeerFile, peerPath)}}}
	if service.ConfigSecret != "" {
		volumes = append(volumes, secretVolume(userConfigVolume, service.ConfigSecret, item(configKey, configKey)))
	}
	if service.FilesSecret != "" {
		volumes = append(volumes, secretVolume(filesSecretVolume, service.FilesSecret, nil),
			map[string]any{"name": filesVolume, "emptyDir": map[string]any{}})
	}
	if service.RingSecret != "" {
		volumes = append(volumes, secretVolume(service.RingSecret, service.RingSecret, item(ringKey, service.RingSecret+".sym.key")))
	}
	return volumes
}

func item(key, path string) []any { return []any{map[string]any{"key": key, "path": path}} }

func secretVolume(name, secret string, items []any) map[string]any {
	source := map[string]any{"secretName": secret}
	if items != nil {
		source["items"] = items
	}
	return map[string]any{"name": name, "secret": source}
}

// mounts gives those of the service. The folder of the keys is written to by the
// supervisor.
func (h Habitat) mounts() []any {
	service := h.Spec.Service
	mounts := []any{map[string]any{"name": configVolume, "mountPath": peerFolder, "readOnly": true}}
	if service.ConfigSecret != "" {
		mounts = append(mounts, mount(userConfigVolume, configFolder(service.Name)))
	}
	if service.FilesSecret != "" {
		mounts = append(mounts, mount(filesVolume, filesFolder(service.Name)))
	}
	if h.Spec.Storage != nil {
		mounts = append(mounts, mount(claimVolume, h.Spec.Storage.MountPath))
	}
	if service.RingSecret != "" {
		mounts = append(mounts, mount(service.RingSecret, keysFolder))
	}
	return mounts
}

func mount(volume, path string) map[string]any {
	return map[string]any{"name": volume, "mountPath": path}
}

// copyFiles gives the init container that copies the files of the Secret to where the
// service may write.
func (h Habitat) copyFiles(image string) map[string]any {
	folder := filesFolder(h.Spec.Service.Name)
	return map[string]any{
		"name":         filesContainer,
		"image":        image,
		"command":      []any{"sh", "-c", "cp " + filesSource + "/* " + folder},
		"volumeMounts": []any{mount(filesSecretVolume, filesSource), mount(filesVolume, folder)},
	}
}
