package agent

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An agent whose Applications are on a hub puts the objects into the namespaces of its own
// cluster that the map names. Several agents can run in one process.
func TestHubAndTargetApart(t *testing.T) {
	clients := kubernetes.NewForConfigOrDie(server)
	name := kit.UniqueName("apart")
	atHub, atBoth, atTarget := name+"-hub", name+"-other", name+"-target"
	for _, namespace := range []string{application.AgentsNamespace, atHub, atBoth, atTarget} {
		createNamespace(t, clients, namespace)
	}
	hub := rest.CopyConfig(server) // another connection, as to another cluster
	registry := prometheus.NewPedanticRegistry()
	for _, cluster := range []string{name, name + "-beside"} {
		options := optionsOf(t, cluster,
			"--hub-namespaces", atHub+","+atBoth, "--namespaces", atTarget+","+atBoth, "--namespace-map", atHub+"="+atTarget,
			"--hub-kubeconfig=hub", "--hub-uid=another-cluster")
		configs := Configs{Hub: hub, Target: server}
		if cluster == name {
			configs.Registry = registry
		}
		defer start(t, newProcess(t, options, configs))()
	}
	signer := newSigner(t, clients)
	createApplication(t, clients, signer, atHub, name, `[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}]`)
	kit.EventuallyNil(t, func() error {
		settings, err := clients.CoreV1().ConfigMaps(atTarget).Get(t.Context(), "settings", metav1.GetOptions{})
		if err == nil && settings.Data["a"] != "1" {
			return fmt.Errorf("its data is %v", settings.Data)
		}
		return err
	})
	kit.EventuallyNil(t, func() error {
		app, err := clients.CoreV1().ConfigMaps(atHub).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && app.Labels[application.StateLabel] != string(application.StateRunning) {
			return fmt.Errorf("the Application says %s", app.Data[application.StatusKey])
		}
		return err
	})
	for _, namespace := range []string{atHub, atTarget} { // of the Application, and of the object
		kit.EventuallyNil(t, func() error {
			events, err := clients.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
			if err == nil && len(events.Items) == 0 {
				return fmt.Errorf("no Events in %s", namespace)
			}
			return err
		})
	}
	if text := scrape(t, registry); !strings.Contains(text, `krake_applications{state="RUNNING"} 1`) {
		t.Errorf("the metrics do not tell of the Application:\n%s", text)
	}
}

// A map of namespaces within one cluster would let a user have objects in a namespace without a right
// there. An agent that was given the hub by another address ends, and names the flag.
func TestNamespacesOfOneClusterAreNotMapped(t *testing.T) {
	clients := kubernetes.NewForConfigOrDie(server)
	name := kit.UniqueName("mapped")
	for _, namespace := range []string{application.AgentsNamespace, name + "-hub", name + "-target"} {
		createNamespace(t, clients, namespace)
	}
	system, err := clients.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	kit.Must(t, err)
	options := optionsOf(t, name, "--hub-namespaces", name+"-hub", "--namespace-map", name+"-hub="+name+"-target", "--hub-kubeconfig=hub", "--hub-uid", string(system.UID))
	agent := newProcess(t, options, Configs{Hub: rest.CopyConfig(server), Target: server})
	defer agent.stop()
	check.Fails(t, "the agent", agent.run(), "--namespace-map: hub and target are one cluster, and an Application could have objects")
}

// newSigner returns a signer whose public key the agents read.
func newSigner(t *testing.T, clients kubernetes.Interface) signature.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	signer := signature.NewSigner(key)
	name, text, err := signer.Public()
	kit.Must(t, err)
	_, err = clients.CoreV1().Secrets(application.AgentsNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: signature.PublicSecret}, Data: map[string][]byte{name: text},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	return signer
}

func createApplication(t *testing.T, clients kubernetes.Interface, signer signature.Signer, namespace, cluster, manifest string) {
	t.Helper()
	cm := kit.Application(namespace, cluster, manifest, kit.On(cluster))
	signer.Sign(cm)
	cm.Labels = map[string]string{application.HolderLabel(cluster): "true"} // as the webhook does
	_, err := clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	kit.Must(t, err)
}
