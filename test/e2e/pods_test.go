package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	leases         = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	configurations = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
)

// needsPods skips a test where webhook and agent are processes beside the cluster.
func needsPods(t *testing.T) *installation.Pods {
	t.Helper()
	if inPods == nil {
		cannotRun(t, "it is about Pods of webhook and agent, and this cluster has none: see docs/testing-on-a-cluster.md")
	}
	return inPods
}

// deploymentsOf are those of the installation.
func deploymentsOf() []installation.Deployment {
	return []installation.Deployment{installation.WebhookDeployment, installation.AgentDeployment}
}

// podsOf reads the Pods of a Deployment.
func podsOf(t *testing.T, d installation.Deployment) []corev1.Pod {
	t.Helper()
	names, err := inPods.Names(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	found := make([]corev1.Pod, 0, len(names))
	for _, name := range names {
		found = append(found, read[corev1.Pod](t, kit.Pods, d.Namespace, name))
	}
	if len(found) != 2 {
		t.Fatalf("%s has Pods %v, want two", d.Name, names)
	}
	return found
}

// read reads an object that is there, as one of its type.
func read[T any](t *testing.T, resource schema.GroupVersionResource, namespace, name string) T {
	t.Helper()
	var typed T
	object := hub.Get(t, resource, namespace, name)
	if object == nil {
		t.Fatalf("there is no %s %s", resource.Resource, name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

// The commands run as somebody who is not root, who may write to no file and has no
// capability, in namespaces that let nothing else in. That the kubelet starts nothing as
// root under this rule is shown by a Pod that asks for both.
func TestPodsAreRestricted(t *testing.T) {
	needsPods(t)
	for _, d := range deploymentsOf() {
		if level := kit.Field(hub.Get(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", d.Namespace),
			"metadata", "labels", "pod-security.kubernetes.io/enforce"); level != "restricted" {
			t.Errorf("namespace %s enforces %v, want restricted", d.Namespace, level)
		}
		for _, pod := range podsOf(t, d) {
			checkRestricted(t, &pod)
		}
	}
	pod := fmt.Sprintf(podOf, inPods.Image(), "privileged: true")
	if text, err := tryKubectl(t, pod, "--namespace", "krake-system", "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(text, "PodSecurity") {
		t.Errorf("a privileged Pod is let in: %s", text)
	}

	namespace := newNamespace(t)
	pod = fmt.Sprintf(podOf, inPods.Image(), "runAsNonRoot: true, runAsUser: 0")
	if text, err := tryKubectl(t, pod, "--namespace", namespace, "create", "-f", "-"); err != nil {
		t.Fatal(text)
	}
	hub.EventuallyField(t, "CreateContainerConfigError", kit.Pods, namespace, "root", "status", "containerStatuses", 0, "state", "waiting", "reason")
}

// podOf is a Pod of an image, with a security context.
const podOf = `
apiVersion: v1
kind: Pod
metadata: {name: root}
spec: {containers: [{name: root, image: %q, imagePullPolicy: IfNotPresent, securityContext: {%s}}]}
`

// checkRestricted: the user is the image's own, which the kubelet has looked at.
func checkRestricted(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	of := pod.Spec.SecurityContext
	if of == nil || of.RunAsNonRoot == nil || !*of.RunAsNonRoot || of.RunAsUser != nil || of.SeccompProfile == nil {
		t.Errorf("Pod %s may be root, or has a user that is not its image's: %+v", pod.Name, of)
	}
	no, yes := false, true
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	for _, container := range pod.Spec.Containers {
		if diff := cmp.Diff(want, container.SecurityContext); diff != "" {
			t.Errorf("container %s (-want +got):\n%s", container.Name, diff)
		}
		if len(container.VolumeMounts) != 1 || !container.VolumeMounts[0].ReadOnly { // the token
			t.Errorf("container %s can write somewhere: %+v", container.Name, container.VolumeMounts)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			t.Errorf("container %s does not run: %+v", status.Name, status.State)
		}
		if user := status.User; user != nil && user.Linux != nil && user.Linux.UID != 65532 {
			t.Errorf("container %s runs as %d, want 65532", status.Name, user.Linux.UID)
		}
	}
}

// Every probe of the manifests is answered: the Pods are ready, none was restarted, and
// what the kubelet asks for, anybody gets.
func TestProbes(t *testing.T) {
	needsPods(t)
	for _, d := range deploymentsOf() {
		for _, pod := range podsOf(t, d) {
			container := pod.Spec.Containers[0]
			if container.ReadinessProbe == nil || container.LivenessProbe == nil {
				t.Fatalf("%s has no probes", pod.Name)
			}
			for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
				path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8081/proxy%s", d.Namespace, pod.Name, probe.HTTPGet.Path)
				if text := hub.Kubectl(t, "get", "--raw", path); text != "ok" {
					t.Errorf("%s of %s answers %q", probe.HTTPGet.Path, pod.Name, text)
				}
			}
			status := pod.Status.ContainerStatuses[0]
			if !status.Ready || status.RestartCount != 0 || status.Started == nil || !*status.Started {
				t.Errorf("container of %s is not ready, or was restarted: %+v", pod.Name, status)
			}
			path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8081/proxy/nothing", d.Namespace, pod.Name)
			if text, err := tryKubectl(t, "", "get", "--raw", path); err == nil {
				t.Errorf("%s answers whatever it is asked: %q", pod.Name, text)
			}
		}
	}
}

// The Pods find the API server by what every Pod has: no kubeconfig and no token of
// ours. One of the agents holds the Lease.
func TestInClusterConfiguration(t *testing.T) {
	needsPods(t)
	var agents []string
	for _, d := range deploymentsOf() {
		for _, pod := range podsOf(t, d) {
			container := pod.Spec.Containers[0]
			if text := fmt.Sprint(container.Args, container.Env); strings.Contains(strings.ToLower(text), "kubeconfig") {
				t.Errorf("%s is told of a kubeconfig: %s", pod.Name, text)
			}
			for _, volume := range pod.Spec.Volumes {
				if volume.Projected == nil {
					t.Errorf("%s has a volume beside its token: %+v", pod.Name, volume)
				}
			}
			if d == installation.AgentDeployment {
				agents = append(agents, pod.Name)
			}
		}
	}
	kit.Eventually(t, func() string {
		if holder := leader(t); !slices.Contains(agents, holder) {
			return fmt.Sprintf("the Lease is of %q, want one of %v", holder, agents)
		}
		return ""
	})
}

// leader is the Pod of the agent that acts.
func leader(t *testing.T) string {
	t.Helper()
	holder, _ := kit.Field(hub.Get(t, leases, "krake-agents", "krake-agent-local"), "spec", "holderIdentity").(string)
	name, _, _ := strings.Cut(holder, "_")
	return name
}

// The Pods of an Application run, and so says its status, which is not ready before. A
// drift of their image is taken back, and they run again.
func TestPodsOfAnApplicationRun(t *testing.T) {
	needsPods(t)
	namespace := newNginx(t)
	running := func() string {
		deployment := read[appsv1.Deployment](t, kit.Deployments, namespace, "nginx")
		if s := deployment.Status; s.AvailableReplicas != 2 || s.UpdatedReplicas != 2 || s.Replicas != 2 {
			return fmt.Sprintf("of the Deployment two Pods are to be available: %+v", s)
		}
		for _, pod := range list[corev1.Pod](t, kit.Pods, namespace) {
			if pod.DeletionTimestamp == nil && (pod.Status.PodIP == "" || pod.Spec.NodeName == "" || pod.Status.ContainerStatuses[0].State.Running == nil) {
				return fmt.Sprintf("Pod %s does not run: %+v", pod.Name, pod.Status)
			}
		}
		return ""
	}
	if complaint := running(); complaint != "" {
		t.Error("the Application says RUNNING, but: " + complaint)
	}
	hub.Kubectl(t, "--namespace", namespace, "set", "image", "deployment/nginx", "nginx=nginx:evil")
	hub.EventuallyField(t, "nginx:1.27", kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 0, "image")
	kit.Eventually(t, running)
	eventuallyState(t, "RUNNING", namespace, "nginx")
}

// list reads the objects of a namespace.
func list[T any](t *testing.T, resource schema.GroupVersionResource, namespace string) []T {
	t.Helper()
	found, err := hub.Dynamic.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	typed := make([]T, len(found.Items))
	for i, item := range found.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &typed[i]); err != nil {
			t.Fatal(err)
		}
	}
	return typed
}

// The API server reaches the webhook by a Service of the cluster, which leads to the
// Pods and to nothing else: without them Applications are refused, other ConfigMaps
// are not, and Applications are healed on.
func TestServiceLeadsToThePods(t *testing.T) {
	needsPods(t)
	namespace := newNginx(t)
	service := read[corev1.Service](t, kit.Services, "krake-system", "krake-webhook")
	if ip := net.ParseIP(service.Spec.ClusterIP); service.Spec.Type != corev1.ServiceTypeClusterIP || ip == nil {
		t.Fatalf("the Service is of type %s with address %q", service.Spec.Type, service.Spec.ClusterIP)
	}
	var addresses []string
	for _, pod := range podsOf(t, installation.WebhookDeployment) {
		addresses = append(addresses, pod.Status.PodIP)
	}
	kit.Eventually(t, func() string { return differ(addresses, endpoints(t)) })

	t.Cleanup(func() {
		if err := inPods.Start(context.WithoutCancel(t.Context()), installation.WebhookDeployment); err != nil {
			t.Error(err)
		}
	})
	if err := inPods.Stop(installation.WebhookDeployment); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, func() string { return differ(nil, endpoints(t)) })
	if err := admit(t.Context(), namespace); err == nil || !strings.Contains(err.Error(), "krake-webhook") {
		t.Errorf("without the webhook an Application is answered %v", err)
	}
	hub.Kubectl(t, "--namespace", namespace, "create", "configmap", "plain")
	hub.Change(t, kit.Services, namespace, "nginx", `{"spec": {"ports": [{"port": 80, "targetPort": 81}]}}`)
	hub.EventuallyField(t, int64(80), kit.Services, namespace, "nginx", "spec", "ports", 0, "targetPort")
	if err := inPods.Start(t.Context(), installation.WebhookDeployment); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, func() string {
		if err := admit(t.Context(), namespace); err != nil {
			return err.Error()
		}
		return ""
	})
}

// endpoints are the addresses that the webhook's Service leads to.
func endpoints(t *testing.T) []string {
	t.Helper()
	found, err := hub.Dynamic.Resource(endpointSlices).Namespace("krake-system").List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=krake-webhook"})
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, slice := range found.Items {
		items, _ := slice.Object["endpoints"].([]any) // null where there are none
		for i := range items {
			address, ok := kit.Field(&slice, "endpoints", i, "addresses", 0).(string)
			if ok && kit.Field(&slice, "endpoints", i, "conditions", "ready") == true {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

func differ(want, got []string) string {
	if slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))) {
		return ""
	}
	return fmt.Sprintf("the Service leads to %v, want %v", got, want)
}

// The certificates come from the Secret: a pair that was asked for is served by both
// Pods without a restart, under a CA that the API server trusts, and then a CA; and all
// the while no admission fails.
func TestCertificateIsRotated(t *testing.T) {
	needsPods(t)
	namespace := newNamespace(t)
	before := podsOf(t, installation.WebhookDeployment)
	admitMeanwhile(t, namespace, func() {
		for _, key := range []string{"tls.crt", "ca.key"} {
			served := certificate(t)
			hub.Change(t, kit.Secrets, "krake-system", "krake-webhook-certificate", `{"data": {"`+key+`": null}}`)
			kit.Eventually(t, func() string {
				switch now := certificate(t); now {
				case "", served:
					return "no other certificate is in the Secret"
				default:
					return ""
				}
			})
			for _, pod := range before {
				address, err := inPods.Forward(t.Context(), installation.WebhookDeployment, pod.Name, "9443")
				if err != nil {
					t.Fatal(err)
				}
				kit.Eventually(t, func() string { return serves(t, address, certificate(t)) })
			}
		}
	})
	for i, pod := range podsOf(t, installation.WebhookDeployment) {
		if pod.UID != before[i].UID || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("%s is another Pod, or was restarted", pod.Name)
		}
	}
}

// certificate is the one in the Secret, empty where there is none.
func certificate(t *testing.T) string {
	t.Helper()
	text, _ := kit.Field(hub.Get(t, kit.Secrets, "krake-system", "krake-webhook-certificate"), "data", "tls.crt").(string)
	return decoded(t, text)
}

func decoded(t *testing.T, text string) string {
	t.Helper()
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// serves complains unless a Pod serves a certificate, and the API server trusts it.
func serves(t *testing.T, address, want string) string {
	t.Helper()
	bundle, _ := kit.Field(hub.Get(t, configurations, "", "krake-webhook"), "webhooks", 0, "clientConfig", "caBundle").(string)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(decoded(t, bundle))) {
		return "the configuration trusts nobody"
	}
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "krake-webhook.krake-system.svc"}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return "the API server would not trust it: " + err.Error()
	}
	defer connection.Close()
	leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	pool := x509.NewCertPool()
	if pool.AppendCertsFromPEM([]byte(want)); !pool.Equal(poolOf(leaf)) {
		return "it serves another certificate than the Secret has"
	}
	return ""
}

func poolOf(leaf *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return pool
}

// While the webhook's Pods are replaced, one after the other, no admission fails.
func TestRollingRestartLosesNoAdmission(t *testing.T) {
	needsPods(t)
	namespace := newNamespace(t)
	before := podsOf(t, installation.WebhookDeployment)
	admitMeanwhile(t, namespace, func() {
		if err := inPods.Restart(t.Context(), installation.WebhookDeployment); err != nil {
			t.Error(err)
			return
		}
		if err := inPods.WaitRolledOut(t.Context(), installation.WebhookDeployment); err != nil {
			t.Error(err)
		}
		kit.Eventually(t, func() string { // the former ones end
			left := list[corev1.Pod](t, kit.Pods, "krake-system")
			if len(left) != len(before) {
				return fmt.Sprintf("%d Pods, want %d", len(left), len(before))
			}
			return ""
		})
	})
	for _, pod := range podsOf(t, installation.WebhookDeployment) {
		if slices.ContainsFunc(before, func(former corev1.Pod) bool { return former.Name == pod.Name }) {
			t.Errorf("%s was not replaced", pod.Name)
		}
	}
}

// admitMeanwhile has Applications admitted, dry run, as long as something is done. None
// may be refused or get by the webhook.
func admitMeanwhile(t *testing.T, namespace string, do func()) {
	t.Helper()
	const few, pause = 20, 20 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	admitted := 0
	var failures []error
	var load sync.WaitGroup
	load.Go(func() {
		for ticker := time.NewTicker(pause); ctx.Err() == nil; <-ticker.C {
			if err := admit(context.WithoutCancel(ctx), namespace); err != nil {
				failures = append(failures, err)
			}
			admitted++
		}
	})
	func() {
		defer load.Wait()
		defer stop()
		do()
	}()
	t.Logf("%d admissions, of which %d failed", admitted, len(failures))
	if admitted < few {
		t.Errorf("%d admissions are too few to show anything", admitted)
	}
	if len(failures) > 0 {
		t.Errorf("%d of %d admissions failed, the first by: %v", len(failures), admitted, failures[0])
	}
}

// admit offers an Application, which the webhook completes.
func admit(ctx context.Context, namespace string) error {
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: offered, annotations: {krake.dev/application: v1}}
data: {spec.manifest: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}"}
`), &object.Object); err != nil {
		return err
	}
	stored, err := hub.Dynamic.Resource(kit.ConfigMaps).Namespace(namespace).Create(ctx, &object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && kit.Field(stored, "data", "status.last_applied_manifest") == nil {
		return fmt.Errorf("the webhook was not called: %v", stored.Object)
	}
	return err
}

// The agent's Pod that acts is killed: the other one takes over, writes nothing, and
// repairs what then differs.
func TestKilledAgentPodIsReplaced(t *testing.T) {
	needsPods(t)
	namespace := newNginx(t)
	kit.Eventually(t, func() string { // a status that is about to be written is no write of the other one
		if first := versions(t, namespace); first != versions(t, namespace) {
			return "it is still written to"
		}
		return ""
	})
	settled := versions(t, namespace)
	killed := leader(t)
	hub.Kubectl(t, "--namespace", "krake-agents", "delete", "pod", killed, "--grace-period=0", "--force")
	kit.Eventually(t, func() string {
		if holder := leader(t); holder == killed || holder == "" {
			return "the Lease is still of " + holder
		}
		return ""
	})
	if err := inPods.WaitRolledOut(t.Context(), installation.AgentDeployment); err != nil {
		t.Fatal(err)
	}
	if now := versions(t, namespace); now != settled {
		t.Errorf("something was written:\n%s\nbefore:\n%s", now, settled)
	}
	hub.Change(t, kit.Services, namespace, "nginx", `{"spec": {"ports": [{"port": 80, "targetPort": 81}]}}`)
	hub.EventuallyField(t, int64(80), kit.Services, namespace, "nginx", "spec", "ports", 0, "targetPort")
}

// versions tell of every write to the Application and its objects.
func versions(t *testing.T, namespace string) string {
	t.Helper()
	var all []string
	for _, resource := range []schema.GroupVersionResource{kit.ConfigMaps, kit.Deployments, kit.Services} {
		all = append(all, resource.Resource+" "+hub.Get(t, resource, namespace, "nginx").GetResourceVersion())
	}
	return strings.Join(all, "\n")
}
