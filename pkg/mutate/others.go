package mutate

import (
	"encoding/base64"
	"encoding/pem"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	observer "github.com/krake-observer/krake-observer/pkg/schema"
)

// leaveToOthers removes from the default schemas what other controllers are meant to write, although the manifest has a
// value there (ADR 009). The first schemas are the custom ones: what a user says there is observed.
func (d *draft) leaveToOthers(custom int) {
	for i, partner := range manifest.PairNamesakes(schemaIDs(d.Mangled), identities(d.Manifest)) {
		if i < custom || partner < 0 {
			continue
		}
		d.Mangled[i] = withoutOthers(d.Mangled[i], d.Manifest[partner])
	}
}

func withoutOthers(observed observer.Schema, resource map[string]any) observer.Schema {
	kind := observed.ID().GroupVersionKind().GroupKind()
	for _, at := range bundlesOf(kind, resource) {
		if !isCertificate(at.bundle) || isInjected(resource) {
			observed = observed.UnobserveAt(at.path)
		}
	}
	for _, annotation := range othersAnnotations()[kind] {
		observed = observed.Unobserve("metadata", "annotations", annotation)
	}
	if kind == (schema.GroupKind{Kind: "ServiceAccount"}) {
		observed = observed.LetGrow("secrets").LetGrow("imagePullSecrets")
	}
	return observed
}

// bundle is a certificate authority of a manifest.
type bundle struct {
	path   observer.Path
	bundle any
}

// bundlesOf returns the certificate authorities by which an API server trusts a webhook or another API server.
func bundlesOf(kind schema.GroupKind, resource map[string]any) []bundle {
	const key = "caBundle"
	switch kind {
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return []bundle{{observer.FieldPath("spec", key), below(resource, "spec")[key]}}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		path := []string{"spec", "conversion", "webhook", "clientConfig"}
		return []bundle{{observer.FieldPath(append(path, key)...), below(resource, path...)[key]}}
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:
	default:
		return nil
	}
	var bundles []bundle
	webhooks, _ := listOf(resource["webhooks"])
	for i, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		path := slices.Concat(observer.FieldPath("webhooks"), observer.Path{{Index: i}}, observer.FieldPath("clientConfig", key))
		bundles = append(bundles, bundle{path, below(fields, "clientConfig")[key]})
	}
	return bundles
}

// isCertificate reports whether a value is what an API server can trust. Manifests have placeholders, such as Cg==.
func isCertificate(value any) bool {
	encoded, _ := value.(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	block, _ := pem.Decode(text)
	return err == nil && block != nil && block.Type == "CERTIFICATE"
}

// isInjected reports whether a manifest asks a controller for the certificate authority.
func isInjected(resource map[string]any) bool {
	annotations := below(resource, "metadata", "annotations")
	return slices.ContainsFunc([]string{
		"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
		"service.beta.openshift.io/inject-cabundle",
	}, func(name string) bool { return annotations[name] != nil })
}

// othersAnnotations are annotations in which Kubernetes keeps what belongs into a status. Manifests that were exported
// have them.
func othersAnnotations() map[schema.GroupKind][]string {
	replicas := []string{"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deployment.kubernetes.io/revision"}
	return map[schema.GroupKind][]string{
		{Group: "apps", Kind: "DaemonSet"}:                      {"deprecated.daemonset.template.generation"},
		{Group: "apps", Kind: "Deployment"}:                     {"deployment.kubernetes.io/revision"},
		{Group: "apps", Kind: "ReplicaSet"}:                     replicas,
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics"},
		{Kind: "PersistentVolumeClaim"}: {
			"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
			"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
		},
	}
}
