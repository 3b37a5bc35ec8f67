package strict

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
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
	w.Make(t, namespace, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: values}, type: kubernetes.io/tls, data: {tls.crt: %s, tls.key: %s}}", chain, key))
	create := []string{"create", "app", "--namespace", namespace, "--filename", file, "--values-from", "tls=values"}

	rights := w.plugin(t, append(create, "--print-missing-rights")...)
	if strings.Contains(rights, "list") || strings.Contains(rights, "watch") || !strings.Contains(rights, "get") {
		t.Fatalf("the rights of the agent:\n%s", rights)
	}
	t.Cleanup(w.Make(t, "", rights))
	begin := w.Mark(t)
	w.grantAccount(t, namespace)
	w.plugin(t, create...)
	w.reconciled(t, namespace, "app")
	stored := func(name, namespace string) string {
		data, _ := w.Get(t, kit.Secrets, namespace, name).Object["data"].(map[string]any)
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
	forged := fmt.Sprintf(`{"data": {"tls.crt": %q, "tls.key": %q}}`, other, otherKey)
	w.Change(t, kit.Secrets, namespace+"-made", "tls", forged)
	w.App(namespace, "app").Annotate(t, "guard", "off")
	w.EventuallyField(t, first, kit.Secrets, namespace+"-made", "tls", "data", "tls.key")
	w.Change(t, kit.Secrets, namespace, "values", forged)
	w.App(namespace, "app").Annotate(t, "guard", "warn")
	w.EventuallyField(t, otherKey, kit.Secrets, namespace+"-made", "tls", "data", "tls.key")
	kit.Eventually(t, func() string {
		drifts := w.App(namespace, "app").Read(t).Status.Drifts
		if len(drifts) != 1 || len(drifts[0].Fields) != 2 || drifts[0].Repaired != string(status.Reverted) {
			return "the history is not the one drift of two values: " + kit.YAML(t, map[string]any{"drifts": drifts})
		}
		return ""
	})
	for _, where := range []schema.GroupVersionResource{kit.ConfigMaps, kit.Events} {
		list, err := w.Dynamic.Resource(where).List(t.Context(), metav1.ListOptions{})
		kit.Must(t, err)
		texts := string(kit.JSON(t, list))
		for _, value := range []string{first, otherKey} {
			decoded, err := base64.StdEncoding.DecodeString(value)
			kit.Must(t, err)
			if line := strings.Split(string(decoded), "\n")[1]; strings.Contains(texts, value) || strings.Contains(texts, line) {
				t.Errorf("a value is in the %s", where.Resource)
			}
		}
	}

	w.App(namespace, "app").Annotate(t, "deletion-policy", string(application.Delete))
	w.gone(t, namespace, "app")
	w.EventuallyGone(t, kit.Namespaces, "", namespace+"-made")
	checkAccount(t, work(t, begin, ""), namespace)
}

// An account reads only the sources that it may get, and an Application without an account has none.
func TestSourcesThatTheAccountMayNotRead(t *testing.T) {
	w := wide
	namespace := w.namespace(t)
	w.Make(t, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: values}, stringData: {password: hunter2}}")
	t.Cleanup(w.Make(t, "", fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s-agent, labels: {krake.dev/aggregate-to-agent: "true"}}
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, "impersonate-on:serviceaccount:create", "impersonate-on:serviceaccount:patch", "impersonate-on:serviceaccount:delete"]
`, namespace)))
	w.account(t, namespace, "krake-deployer", "")
	w.grant(t, namespace, "copies", "ServiceAccount/krake-deployer", "resources: [secrets], resourceNames: [copy], verbs: [get, create, patch, delete]")
	w.grant(t, namespace, "creates", "ServiceAccount/krake-deployer", "resources: [secrets], verbs: [create]")
	w.apply(t, namespace, "app", "{apiVersion: v1, kind: Secret, metadata: {name: copy}}", kit.Annotation("values-from", "copy=values"))
	w.says(t, namespace, "app", "Forbidden", "krake-deployer", "get secrets values")
	if made := w.Get(t, kit.Secrets, namespace, "copy"); made != nil {
		t.Errorf("there is %s", made.GetName())
	}
	w.grant(t, namespace, "reads", "ServiceAccount/krake-deployer", "resources: [secrets], resourceNames: [values], verbs: [get]")
	w.reconciled(t, namespace, "app")
	w.EventuallyField(t, "aHVudGVyMg==", kit.Secrets, namespace, "copy", "data", "password")
}

// certificate makes a certificate and its key, as the data of a Secret has them.
func certificate(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	certificateText, keyText, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	kit.Must(t, err)
	return base64.StdEncoding.EncodeToString(certificateText), base64.StdEncoding.EncodeToString(keyText)
}
