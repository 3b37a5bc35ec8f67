package habitat

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Names in the Pods.
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
)

func configFolder(service string) string { return "/hab/user/" + service + "/config" }
func filesFolder(service string) string  { return "/hab/svc/" + service + "/files" }

// Workload returns the StatefulSet of [V1beta2], or the Deployment of [V1beta1], with
// namespace and without owner. The image is that of the init container which copies
// files. Each call returns another object.
//
// The workload has only the fields that the Habitat asks for, so that users can set
// others: resources, probes, affinity.
func (h Habitat) Workload(filesImage string) map[string]any {
	kind := "Deployment"
	metadata := map[string]any{"name": h.Name, "namespace": h.Namespace}
	podLabels := h.labels()
	podLabels[deprecatedTopologyLabel] = h.Spec.Service.Topology
	spec := map[string]any{
		"replicas": int64(h.Spec.Count),
		"selector": map[string]any{"matchLabels": map[string]any{NameLabel: h.Name}},
		"template": map[string]any{"metadata": map[string]any{"labels": podLabels}, "spec": h.podSpec(filesImage)},
	}
	if h.CustomVersion == V1beta2 {
		kind = "StatefulSet"
		metadata["labels"] = h.labels()
		podLabels[TopologyLabel] = h.Spec.Service.Topology
		spec["podManagementPolicy"] = "Parallel"
		spec["updateStrategy"] = map[string]any{"type": h.Spec.UpdateStrategy}
		if h.Spec.Storage != nil {
			spec["volumeClaimTemplates"] = []any{h.claim()}
		}
	}
	return map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}
}

func (h Habitat) labels() map[string]any { return map[string]any{Label: "true", NameLabel: h.Name} }

// claim returns the claim template.
func (h Habitat) claim() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": claimVolume, "namespace": h.Namespace, "labels": h.labels()},
		"spec": map[string]any{
			"accessModes":      []any{"ReadWriteOnce"},
			"storageClassName": h.Spec.Storage.StorageClass,
			"resources":        map[string]any{"requests": map[string]any{"storage": h.Spec.Storage.Size}},
		},
	}
}

func (h Habitat) podSpec(filesImage string) map[string]any {
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
		// The init container copies the Secret's files to where the service may write.
		folder := filesFolder(h.Spec.Service.Name)
		spec["initContainers"] = []any{map[string]any{
			"name":         filesContainer,
			"image":        filesImage,
			"command":      []any{"sh", "-c", "cp " + filesSource + "/* " + folder},
			"volumeMounts": []any{mount(filesSecretVolume, filesSource), mount(filesVolume, folder)},
		}}
	}
	return spec
}

// arguments returns the arguments of the supervisor. Their order only matters to the Pod template:
// another order would replace all Pods.
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

// ringOf returns the name of a ring: the name of its Secret without the revision.
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

// mounts returns the mounts of the service. The supervisor writes to the folder of the
// keys.
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
