package strict

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A Secret without values, the namespace that it is in, and one that is filled by its controller.
//
//nolint:gosec // they have no values
const emptySecrets = `
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: NAME-made, labels: {part: web}}
type: kubernetes.io/tls
---
apiVersion: v1
kind: Namespace
metadata: {name: NAME-made}
`

// A Secret gets its values from another one, which the account of the Application may get. With the rights that kubectl krake prints, the
// agent can list no Secrets, and the values are in no ConfigMap, Event, log, or metric.
func TestValuesFromASecret(t *testing.T) {
	w := wide
	namespace := w.namespace(t)
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	kit.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(emptySecrets, "NAME", namespace)), 0o600))
	chain, key := certificate(t, "first.example.com")
	w.Kubectl(t, "--namespace", namespace, "create", "secret", "tls", "values", "--cert", chain, "--key", key)
	create := []string{"create", "app", "--namespace", namespace, "--filename", file, "--values-from", "tls=values"}

	rights := w.plugin(t, append(create, "--print-missing-rights")...)
	if strings.Contains(rights, "list") || strings.Contains(rights, "watch") || !strings.Contains(rights, "get") {
		t.Fatalf("the rights of the agent:\n%s", rights)
	}
	w.Apply(t, rights)
	t.Cleanup(func() { w.Kubectl(t, "delete", "clusterrole", "krake-agent-app") })
	begin := w.Mark(t)
	w.grantAccount(t, namespace)
	w.plugin(t, create...)
	w.reconciled(t, namespace, "app")
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	stored := func(name, namespace string) string {
		data, _ := w.Get(t, secrets, namespace, name).Object["data"].(map[string]any)
		text, _ := data["tls.key"].(string)
		return text
	}
	first := stored("values", namespace)
	if made := stored("tls", namespace+"-made"); made != first || first == "" {
		t.Fatalf("the Secret has a key of %d bytes, its source one of %d", len(made), len(first))
	}
	for _, r := range refused(work(t, begin, "")) {
		t.Errorf("refused: %s", r)
	}

	// The values are read once a minute, and after each change of the Application.
	other, otherKey := certificate(t, "second.example.com")
	forged := kit.YAML(t, map[string]any{"data": map[string]any{"tls.crt": read64(t, other), "tls.key": read64(t, otherKey)}})
	w.Kubectl(t, "--namespace", namespace+"-made", "patch", "secret", "tls", "--patch", forged)
	w.App(namespace, "app").Annotate(t, "guard", "off")
	w.EventuallyField(t, first, secrets, namespace+"-made", "tls", "data", "tls.key")
	w.Kubectl(t, "--namespace", namespace, "patch", "secret", "values", "--patch", forged)
	w.App(namespace, "app").Annotate(t, "guard", "warn")
	w.EventuallyField(t, read64(t, otherKey), secrets, namespace+"-made", "tls", "data", "tls.key")
	kit.Eventually(t, func() string {
		drifts := w.App(namespace, "app").Read(t).Status.Drifts
		if len(drifts) != 1 || len(drifts[0].Fields) != 2 || drifts[0].Repaired != string(status.Reverted) {
			return "the history is not the one drift of two values: " + kit.YAML(t, map[string]any{"drifts": drifts})
		}
		return ""
	})
	for _, where := range []string{"configmaps", "events"} {
		texts := w.Kubectl(t, "get", where, "--all-namespaces", "--output", "yaml")
		for _, value := range []string{first, read64(t, otherKey)} {
			decoded, err := base64.StdEncoding.DecodeString(value)
			kit.Must(t, err)
			if strings.Contains(texts, value) || strings.Contains(texts, string(decoded)) {
				t.Errorf("a value is in the %s", where)
			}
		}
	}

	w.App(namespace, "app").Annotate(t, "deletion-policy", string(application.Delete))
	w.Kubectl(t, "--namespace", namespace, "delete", "configmap", "app", "--timeout", kit.Timeout.String())
	w.EventuallyGone(t, kit.Namespaces, "", namespace+"-made")
	checkAccount(t, work(t, begin, ""), namespace)
}

// An account reads only the sources that it may get, and an Application without an account has none.
func TestSourcesThatTheAccountMayNotRead(t *testing.T) {
	w := wide
	namespace := w.namespace(t)
	w.Kubectl(t, "--namespace", namespace, "create", "secret", "generic", "values", "--from-literal=password=hunter2")
	w.Kubectl(t, "create", "clusterrole", namespace+"-agent", "--verb=get,impersonate-on:serviceaccount:create,impersonate-on:serviceaccount:patch,impersonate-on:serviceaccount:delete", "--resource=secrets")
	w.Kubectl(t, "label", "clusterrole", namespace+"-agent", "krake.dev/aggregate-to-agent=true")
	t.Cleanup(func() { w.Kubectl(t, "delete", "clusterrole", namespace+"-agent") })
	w.account(t, namespace, "krake-deployer", "")
	w.Kubectl(t, "--namespace", namespace, "create", "role", "copies", "--verb=get,create,patch,delete", "--resource=secrets", "--resource-name=copy")
	w.Kubectl(t, "--namespace", namespace, "create", "role", "creates", "--verb=create", "--resource=secrets")
	for _, role := range []string{"copies", "creates"} {
		w.Kubectl(t, "--namespace", namespace, "create", "rolebinding", role, "--role", role, "--serviceaccount", namespace+":krake-deployer")
	}
	w.apply(t, namespace, "app", "{apiVersion: v1, kind: Secret, metadata: {name: copy}}", kit.Annotation("values-from", "copy=values"))
	w.says(t, namespace, "app", "Forbidden", "krake-deployer", "get secrets values")
	if text := w.Kubectl(t, "--namespace", namespace, "get", "secret", "copy", "--ignore-not-found", "--output", "name"); text != "" {
		t.Errorf("there is %s", text)
	}
	w.Kubectl(t, "--namespace", namespace, "create", "role", "reads", "--verb=get", "--resource=secrets", "--resource-name=values")
	w.Kubectl(t, "--namespace", namespace, "create", "rolebinding", "reads", "--role=reads", "--serviceaccount", namespace+":krake-deployer")
	w.reconciled(t, namespace, "app")
	w.EventuallyField(t, "aHVudGVyMg==", corev1.SchemeGroupVersion.WithResource("secrets"), namespace, "copy", "data", "password")
}

// certificate makes a certificate and its key, and returns their files.
func certificate(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	certificateText, keyText, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	kit.Must(t, err)
	kit.Must(t, os.WriteFile(certificate, certificateText, 0o600))
	kit.Must(t, os.WriteFile(key, keyText, 0o600))
	return certificate, key
}

// read64 returns the content of a file as the data of a Secret has it.
func read64(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	kit.Must(t, err)
	return base64.StdEncoding.EncodeToString(content)
}
