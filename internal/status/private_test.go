package status_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// at returns the path of the steps. "0" is an index.
func at(steps string) schema.Path {
	var path schema.Path
	for step := range strings.FieldsSeq(steps) {
		if step == "0" {
			path = append(path, schema.Step{Index: 0})
			continue
		}
		path = append(path, schema.Step{Field: step, Index: -1})
	}
	return path
}

const inContainers = "spec template spec containers 0 "

// A value that may be a secret is private, and the name of a Secret is not.
func TestIsPrivate(t *testing.T) {
	for _, c := range []struct {
		kind, path string
		value      any
		private    bool
	}{
		{"Secret", "data password", "x", true},
		{"Secret", "metadata labels app", "web", true},
		{"Secret", "immutable", true, true},
		{"ConfigMap", "data key", "x", true},
		{"Deployment", "metadata labels app", "web", false},
		{"Deployment", "spec selector matchLabels app.kubernetes.io/name", "web", false},
		{"Deployment", inContainers + "image", "web:1", false},
		{"Deployment", inContainers + "image", "https://me:hunter2@example.org/web", true},
		{"Deployment", inContainers + "env 0 name", "PASSWORD", false},
		{"Deployment", inContainers + "env 0 value", "hunter2", true},
		{"Deployment", inContainers + "env 0", map[string]any{"name": "PASSWORD", "value": "hunter2"}, true},
		{"Deployment", inContainers + "env", []any{}, true},
		{"Deployment", inContainers + "env 0 valueFrom secretKeyRef key", "password", false},
		{"Deployment", inContainers + "envFrom 0 secretRef name", "db", false},
		{"Deployment", inContainers + "args 0", "--password=hunter2", true},
		{"Deployment", inContainers + "command 0", "sh", true},
		{"Deployment", "spec template spec imagePullSecrets 0 name", "registry", false},
		{"Deployment", "spec template spec volumes 0 secret secretName", "db", false},
		{"Deployment", "spec template spec volumes 0 secret defaultMode", int64(420), false},
		{"Deployment", "spec template spec volumes 0 secret items 0 key", "password", false},
		{"Deployment", "spec template spec volumes 0 projected sources 0 serviceAccountToken audience", "vault", false},
		{"Deployment", "spec template spec automountServiceAccountToken", true, false},
		{"Ingress", "spec tls 0 secretName", "web-tls", false},
		{"Song", "spec adminPassword", "hunter2", true},
		{"Song", "spec secret items 0", "hunter2", true},
		{"Song", "spec secret key", "hunter2", true},
		{"Song", "spec tokens 0", "hunter2", true},
		{"Song", "spec passwordSecretRef name", "db", false},
		{"Song", "spec credentials value", int64(1234), true},
		{"Song", "spec url", "postgres://me:hunter2@db/web", true},
		{"Song", "spec url", "https://example.org:8080/a@b", false},
		{"Song", "spec certificate", "-----BEGIN PRIVATE KEY-----", true},
		{"Service", "metadata annotations example.org/note", "of team shop", false},
		{"Service", "metadata annotations example.org/api-key", "hunter2", true},
		{"Service", "metadata annotations example.org/note", "the token is hunter2", true},
		{"Service", "metadata annotations example.org/config", `{"user": "hunter2"}`, true},
		{"Service", "metadata annotations example.org/note", strings.Repeat("x", 65), true},
		{"Service", "metadata annotations", map[string]any{}, true},
	} {
		check.Equal(t, fmt.Sprintf("%s %s: %v is private", c.kind, c.path, c.value), c.private, status.IsPrivate(c.kind, at(c.path), c.value))
	}
}
