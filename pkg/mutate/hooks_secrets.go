package mutate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// HookSecret describes the use of a Secret that a hook has added.
type HookSecret struct {
	Hook application.Hook
	// Certs reports that it has the certificates, instead of the token and the URL to call.
	Certs bool
}

func (s HookSecret) keys() []string {
	if s.Certs {
		return []string{application.CABundleKey, application.CertificateKey, application.PrivateKeyKey}
	}
	return []string{application.TokenKey(s.Hook), application.URLKey(s.Hook)}
}

// documents returns the Secret without its values, and an observer schema for everything in the
// Secret, with the values.
func (s HookSecret) documents(app, namespace string) (resource, observed map[string]any) {
	name := application.TokenSecret(app, s.Hook)
	if s.Certs {
		name = application.CertsSecret(app, s.Hook)
	}
	metadata, observedMetadata := map[string]any{"name": name}, map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"], observedMetadata["namespace"] = namespace, nil
	}
	data := map[string]any{}
	for _, key := range s.keys() {
		data[key] = nil
	}
	resource = map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
	return resource, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": observedMetadata, "type": nil, "data": data}
}

// checkHookNames refuses an Application whose name is too long for the names of its Secrets.
func checkHookNames(hooks application.Hooks) field.ErrorList {
	var refusals field.ErrorList
	for _, hook := range hooks.Enabled() {
		name := application.TokenSecret(hooks.Application, hook)
		if more := len(name) - validation.DNS1123SubdomainMaxLength; more > 0 {
			refusals = append(refusals, invalid("metadata.name", fmt.Sprintf(
				"the Secrets of the hook %s are named after the Application: choose a name of at most %d characters, or remove the hook from annotation %s",
				hook, len(hooks.Application)-more, application.HooksAnnotation)))
		}
	}
	return refusals
}

// checkHookSecrets refuses Secrets with the names of the hooks' Secrets, in any namespace. A schema
// has no namespace. A schema that observes values must not be paired with another Secret, whose
// values would then be in the status.
func checkHookSecrets(hooks application.Hooks, resources []map[string]any) field.ErrorList {
	var refusals field.ErrorList
	for i, resource := range resources {
		if !isCore(resource, "Secret") {
			continue
		}
		for _, hook := range hooks.Enabled() {
			name := below(resource, "metadata")["name"]
			if name == application.TokenSecret(hooks.Application, hook) || name == application.CertsSecret(hooks.Application, hook) {
				refusals = append(refusals, forbidden(ResourcePath(i)+".metadata.name", isOfHook(hook)))
			}
		}
	}
	return refusals
}
