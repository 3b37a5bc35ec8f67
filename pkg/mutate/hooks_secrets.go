package mutate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// HookSecret says what a Secret that a hook has added is for.
type HookSecret struct {
	Hook application.Hook
	// Certs says that it holds the certificates, and not the token and the URL to call.
	Certs bool
}

func (s HookSecret) keys() []string {
	if s.Certs {
		return []string{application.CABundleKey, application.CertificateKey, application.PrivateKeyKey}
	}
	return []string{application.TokenKey(s.Hook), application.URLKey(s.Hook)}
}

// documents returns the Secret without its values, and an observer schema that observes them
// and all that the Secret has.
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
				"the Secrets of the hook %s are named after the Application: choose a name of at most %d characters, or take the hook out of annotation %s",
				hook, len(hooks.Application)-more, application.HooksAnnotation)))
		}
	}
	return refusals
}

// checkHookSecrets refuses Secrets with the names of those of the hooks, in any namespace:
// a schema has no namespace, and one that observes values must not get to another Secret,
// whose values would then be in the status.
func checkHookSecrets(hooks application.Hooks, resources []map[string]any) field.ErrorList {
	var refusals field.ErrorList
	for i, resource := range resources {
		if !isCore(resource, "Secret") {
			continue
		}
		for _, hook := range hooks.Enabled() {
			name := below(resource, "metadata")["name"]
			if name == application.TokenSecret(hooks.Application, hook) || name == application.CertsSecret(hooks.Application, hook) {
				refusals = append(refusals, forbidden(resourcePath(i)+".metadata.name", isOfHook(hook)))
			}
		}
	}
	return refusals
}
