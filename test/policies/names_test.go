package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The policies contain names that the programs import from one package. A change there
// needs a change here.
func TestNames(t *testing.T) {
	for file, names := range map[string][]string{
		"application.yaml": {
			application.FormatAnnotation, application.ClusterAnnotation, application.LocalCluster, application.ForceDeleteAnnotation,
			application.DeletionPolicyAnnotation, application.HooksAnnotation, application.ShutdownStrategyAnnotation,
			application.ShutdownGraceTimeAnnotation, application.ShutdownRetryCountAnnotation,
			application.MangledSchemaKey, application.TranslatedKey,
			application.StateLabel, application.StatusKey, application.LearnedKey, application.LastObservedKey, application.LastAppliedKey,
			application.InventoryKey(""), application.HolderLabel(""), application.Finalizer(""),
			application.SystemNamespace, application.AgentsNamespace, "system:serviceaccount:" + application.AgentsNamespace + ":",
			"system:serviceaccounts:" + application.AgentsNamespace,
		},
		"deletion.yaml": {
			application.FormatAnnotation, application.ApplicationsResource, application.Domain,
			application.ClusterAnnotation, application.LocalCluster, application.HolderLabel(""),
			application.HooksAnnotation, string(application.Complete),
			"system:serviceaccount:" + application.AgentsNamespace + ":", "system:serviceaccounts:" + application.AgentsNamespace,
		},
		"agents.yaml": {
			application.FormatAnnotation, application.OwnedByLabel, application.OwnerAnnotation, application.OwnerUIDAnnotation,
			"system:serviceaccount:" + application.AgentsNamespace + ":", "system:serviceaccounts:" + application.AgentsNamespace,
		},
		"namespaces.yaml": {
			application.FormatAnnotation, application.OwnerAnnotation,
			"system:serviceaccount:" + application.AgentsNamespace + ":", "system:serviceaccounts:" + application.AgentsNamespace,
		},
		"leases.yaml": {
			application.HubLease(""), application.TargetLease(""), application.TargetAnnotation,
			"system:serviceaccount:" + application.AgentsNamespace + ":", "system:serviceaccounts:" + application.AgentsNamespace,
		},
	} {
		text, err := os.ReadFile(filepath.Join(server.Dir(), "manifests", "base", "policies", file))
		kit.Must(t, err)
		for _, name := range names {
			if !strings.Contains(string(text), `"`+name+`"`) {
				t.Errorf("%s does not have %q", file, name)
			}
		}
	}
	for _, key := range []string{"status", "status.learned", "status.last_observed_manifest", "inventory.local"} {
		if !application.IsAgentKey(key) {
			t.Errorf("%s is no key of the agents", key)
		}
	}
}
