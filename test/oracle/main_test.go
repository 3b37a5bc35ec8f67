package oracle

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What all tests share. No other suite uses this cluster, because the installation is cluster-wide.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name:   "oracle",
		AtOnce: workers,
		Start:  start,
		Logs:   func() []string { return installed.Logs() },
		Stop:   func() error { return hub.Stop() },
	}.Main(m)
}

// onlyAgents is an audit policy. It records what the agent writes. Of a long run, everything else
// would fill the disk.
const onlyAgents = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: None, resources: [{group: coordination.k8s.io, resources: [leases]}]}
- {level: Request, users: ["` + kit.LocalAgent + `"]}
- {level: None}
`

// everything is what the accounts of the Applications may write. The installation grants the agent
// a choice of kinds only.
const everything = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: krake-everything, labels: {krake.dev/aggregate-to-agent: "true"}}
rules:
- apiGroups: ["*"]
  resources: ["*"]
  verbs: [get, list, watch, "impersonate-on:serviceaccount:create", "impersonate-on:serviceaccount:patch", "impersonate-on:serviceaccount:delete"]
`

// start installs webhook and agent such that Applications may have objects of all kinds.
func start(ctx context.Context) (err error) {
	if hub, err = kit.StartPlane(ctx, cluster.Options{PretendKubelet: true, AuditPolicy: onlyAgents}); err != nil {
		return err
	}
	flags := []string{"--scope=cluster", "--require-service-account"}
	options := installation.Options{Overlay: "platform", WebhookArgs: flags, AgentArgs: flags}
	if installed, err = installation.InstallWith(ctx, hub.Cluster, options, os.Stderr); err != nil {
		return err
	}
	for _, file := range []string{everything, definitions} {
		if text, err := kit.TryKubectl(ctx, hub.Cluster, file, "apply", "-f", "-"); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
	}
	return nil
}

// definitions are a kind whose definition does not change, and a policy that refuses some repairs, and the apply
// as well: a label whose value ends with 7 must not change.
const definitions = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: oracle}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["", apps, batch, networking.k8s.io, rbac.authorization.k8s.io], apiVersions: [v1], operations: [UPDATE], resources: ["*"]}
  matchConditions:
  - {name: administrators-may, expression: "request.dryRun || request.userInfo.username.startsWith('system:serviceaccount:oracle-')"}
  validations:
  - message: the label must not change
    expression: >-
      !has(oldObject.metadata.labels) || oldObject.metadata.labels.all(name, name.startsWith('krake.dev/') || !oldObject.metadata.labels[name].endsWith('7')
      || has(object.metadata.labels) && name in object.metadata.labels && object.metadata.labels[name] == oldObject.metadata.labels[name])
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: oracle}
spec: {policyName: oracle, validationActions: [Deny]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.oracle.example.com}
spec:
  group: oracle.example.com
  scope: Namespaced
  names: {kind: Shelf, plural: shelves}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              owner: {type: string, default: library}
              width: {type: integer}
              labels: {type: object, additionalProperties: {type: string}}
              boxes: {type: array, items: {type: string}}
              books: {type: array, items: {type: object, properties: {title: {type: string}, year: {type: integer}, tags: {type: array, items: {type: string}}}}}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// newNamespace creates a namespace whose Applications may write everything.
func newNamespace(t *testing.T, prefix string) string {
	t.Helper()
	namespace := hub.NewNamespaceOfApps(t, prefix)
	hub.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: %[1]s, name: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: "", kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: %[2]s}]
`, namespace, application.DefaultServiceAccount))
	return namespace
}

// installs returns the files in the folder that KRAKE_INSTALLS names.
func installs(t *testing.T) []string {
	t.Helper()
	folder := os.Getenv("KRAKE_INSTALLS")
	if folder == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	kit.Must(t, err)
	return files
}

// cannotRun are kinds that this cluster cannot have, with the reasons.
var cannotRun = map[string]string{
	"ValidatingWebhookConfiguration": "its webhooks do not run, and every write would fail",
	"MutatingWebhookConfiguration":   "its webhooks do not run, and every write would fail",
	"APIService":                     "its server does not run, and discovery would fail",
}

// resourcesIn returns the resources of a file, and logs those that it leaves out.
func resourcesIn(t *testing.T, file string) (resources []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return resources
		}
		kit.Must(t, err)
		if len(document) > manifest.MaxBytes {
			name, _, _ := bytes.Cut(document[bytes.Index(document, []byte("\n  name: "))+1:], []byte("\n"))
			t.Logf("%s: left out: %s: a document of %d bytes: an Application has at most %d", filepath.Base(file), name, len(document), manifest.MaxBytes)
			continue
		}
		decoded, err := manifest.Decode(document)
		kit.Must(t, err)
		for _, resource := range decoded {
			object := &unstructured.Unstructured{Object: resource.(map[string]any)}
			if why := cannotRun[object.GetKind()]; why != "" {
				t.Logf("%s: left out: %s %s: %s", filepath.Base(file), object.GetKind(), object.GetName(), why)
				continue
			}
			resources = append(resources, object)
		}
	}
}

// duration and number read a variable of the environment.
func duration(t *testing.T, variable string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	value, err := time.ParseDuration(text)
	kit.Must(t, err)
	return value
}

func number(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	value, err := strconv.Atoi(text)
	kit.Must(t, err)
	return value
}
