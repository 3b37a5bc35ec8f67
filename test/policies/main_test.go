package policies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the API server with the policies, which all tests share. No other suite uses
// it, because policies are cluster-wide.
var server *kit.Plane

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "policies",
		Start: func(ctx context.Context) (err error) {
			if server, err = kit.StartPlane(ctx, cluster.Options{}); err != nil {
				return err
			}
			return install(ctx)
		},
		// An expression that fails refuses the request in any case.
		Check: func(context.Context) error { return noExpressionFailed() },
		Stop:  func() error { return server.Stop() },
	}.Main(m)
}

// install applies the manifests, those for Habitats too, removes the webhook, and waits until both take effect. No
// program of them runs.
func install(ctx context.Context) error {
	if err := os.CopyFS(filepath.Join(server.Dir(), "manifests"), manifests.Files); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	if err := createEarly(ctx); err != nil {
		return err
	}
	all, err := kustomize("installed", "replicas: [{name: krake-habitat, count: 0}]\nresources: [../overlays/e2e]",
		"habitat/crd", "habitat/roles", "habitat/policies", "habitat/controller", "habitat/cluster")
	if err != nil {
		return err
	}
	if text, err := kit.TryKubectl(ctx, server.Cluster, "", "apply", "-k", all); err != nil || strings.Contains(text, "Warning") {
		return fmt.Errorf("kubectl apply -k %s: %w\n%s", all, err, text)
	}
	if err := errors.Join(deleteConfiguration(ctx), grant(ctx)); err != nil {
		return err
	}
	inForce := probes()
	maps.Copy(inForce, habitatProbes())
	for what, refused := range inForce {
		if err := kit.Wait(ctx, what, func() (bool, error) { return refused(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func deleteConfiguration(ctx context.Context) error {
	return server.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, "krake-webhook", metav1.DeleteOptions{})
}

// createEarly creates an Application, before the policies exist, in a namespace where
// they allow none.
func createEarly(ctx context.Context) error {
	early := with(plain("kube-system", "early"), annotated, func(cm *corev1.ConfigMap) {
		cm.Finalizers = []string{"example.org/theirs"}
	})
	return kit.ErrorOf(server.CoreV1().ConfigMaps(early.Namespace).Create(ctx, early, metav1.CreateOptions{}))
}

// probes are writes that change nothing, one for each policy, and one for the deleted
// webhook. A policy takes effect after a while. Each probe violates all rules of its
// policy, so that it depends on no single one.
func probes() map[string]func(context.Context) (bool, error) {
	application := with(plain("default", "probe"), annotated)
	forged := with(plain("kube-system", "probe"), annotated, data("status", "{}"), label("krake.dev/state", "x"), addFinalizerOf("local"))
	deletion := func(ctx context.Context, mere clients) error {
		configMaps := server.CoreV1().ConfigMaps("default")
		if _, err := configMaps.Create(ctx, application, metav1.CreateOptions{}); err != nil {
			return err
		}
		err := mere.CoreV1().ConfigMaps("default").Delete(ctx, "probe", metav1.DeleteOptions{DryRun: dry})
		if gone := configMaps.Delete(ctx, "probe", metav1.DeleteOptions{}); gone != nil {
			return gone
		}
		return err
	}
	return map[string]func(context.Context) (bool, error){
		"the webhook is gone": func(ctx context.Context) (bool, error) {
			return administrator.does(creation(application))(ctx) == nil, nil
		},
		"krake-agents-leases is in force": refusedBy("krake-agents-leases",
			agent("local").does(func(ctx context.Context, client clients) error {
				return kit.ErrorOf(client.CoordinationV1().Leases("krake-agents").Create(ctx, lease("probe"), metav1.CreateOptions{DryRun: dry}))
			})),
		"krake-agents-namespaces is in force": refusedBy("krake-agents-namespaces", agent("local").does(creation(with(plain("krake-system", "probe"), marked)))),
		"krake-configmaps is in force":        refusedBy("krake-configmaps", administrator.does(creation(forged))),
		"krake-configmaps-deletion is in force": refusedBy("krake-configmaps-deletion",
			identity{name: configMapEditor.name, groups: impostor.groups}.does(deletion)),
	}
}

// creation creates a ConfigMap, as a dry run.
func creation(cm *corev1.ConfigMap) try {
	return func(ctx context.Context, client clients) error {
		return kit.ErrorOf(client.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{DryRun: dry}))
	}
}

// does returns a check that calls do with a client of the identity.
func (i identity) does(do try) func(context.Context) error {
	return func(ctx context.Context) error {
		client, err := i.client(ctx)
		if err != nil {
			return err
		}
		return do(ctx, client)
	}
}

// refusedBy reports whether the error is the refusal of this policy.
func refusedBy(policy string, write func(context.Context) error) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := write(ctx)
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"), nil
	}
}
