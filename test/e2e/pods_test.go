package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// needsPods skips a test if webhook and agent are processes beside the cluster.
func needsPods(t *testing.T) *installation.Pods {
	t.Helper()
	if inPods == nil {
		cannotRun(t, "it is about Pods of webhook and agent, and this cluster has none: see docs/testing-on-a-cluster.md")
	}
	return inPods
}

// deploymentsOf returns the Deployments of the installation.
func deploymentsOf() []installation.Deployment {
	return []installation.Deployment{installation.WebhookDeployment, installation.AgentDeployment}
}

// podsOf reads the Pods of a Deployment.
func podsOf(t *testing.T, d installation.Deployment) []corev1.Pod {
	t.Helper()
	names, err := inPods.Names(t.Context(), d)
	kit.Must(t, err)
	found := make([]corev1.Pod, 0, len(names))
	for _, name := range names {
		pod, err := hub.CoreV1().Pods(d.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		kit.Must(t, err)
		found = append(found, *pod)
	}
	if len(found) != 2 {
		t.Fatalf("%s has Pods %v, want two", d.Name, names)
	}
	return found
}

// The commands run as a user other than root, with a read-only file system and no
// capability, in namespaces that allow nothing else. A Pod that asks to run as root
// shows that the kubelet enforces it.
func TestPodsAreRestricted(t *testing.T) {
	needsPods(t)
	for _, d := range deploymentsOf() {
		if level := kit.Field(hub.Get(t, kit.Namespaces, "", d.Namespace),
			"metadata", "labels", "pod-security.kubernetes.io/enforce"); level != "restricted" {
			t.Errorf("namespace %s enforces %v, want restricted", d.Namespace, level)
		}
		for _, pod := range podsOf(t, d) {
			checkRestricted(t, &pod)
		}
	}
	pod := fmt.Sprintf(podOf, inPods.Image(), "privileged: true")
	if text, err := kit.TryKubectl(t.Context(), hub.Cluster, pod, "--namespace", "krake-system", "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(text, "PodSecurity") {
		t.Errorf("a privileged Pod is let in: %s", text)
	}

	namespace := newNamespace(t)
	pod = fmt.Sprintf(podOf, inPods.Image(), "runAsNonRoot: true, runAsUser: 0")
	hub.KubectlWith(t, pod, "--namespace", namespace, "create", "-f", "-")
	hub.EventuallyField(t, "CreateContainerConfigError", kit.Pods, namespace, "root", "status", "containerStatuses", 0, "state", "waiting", "reason")
}

// podOf is a Pod with an image and a security context.
const podOf = `
apiVersion: v1
kind: Pod
metadata: {name: root}
spec: {containers: [{name: root, image: %q, imagePullPolicy: IfNotPresent, securityContext: {%s}}]}
`

// checkRestricted checks that the user is the one of the image, which the kubelet has
// verified.
func checkRestricted(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	of := pod.Spec.SecurityContext
	if of == nil || of.RunAsNonRoot == nil || !*of.RunAsNonRoot || of.RunAsUser != nil || of.SeccompProfile == nil {
		t.Errorf("Pod %s may be root, or has a user that is not its image's: %+v", pod.Name, of)
	}
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
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

// Every probe of the manifests succeeds: the Pods are ready, and none was restarted.
// Any client may request the probes.
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
			if text, err := kit.TryKubectl(t.Context(), hub.Cluster, "", "get", "--raw", path); err == nil {
				t.Errorf("%s answers whatever it is asked: %q", pod.Name, text)
			}
		}
	}
}

// The Pods find the API server as every Pod does, without a kubeconfig or token of
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

// leader returns the agent's Pod that acts.
func leader(t *testing.T) string {
	t.Helper()
	lease, err := hub.CoordinationV1().Leases("krake-agents").Get(t.Context(), "krake-agent-local", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	kit.Must(t, err)
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name
}

// The Pods of an Application run, and then its status is ready, and not before. A drift
// of their image is reverted, and they run again.
func TestPodsOfAnApplicationRun(t *testing.T) {
	needsPods(t)
	namespace := newNginx(t)
	running := func() string {
		deployment, err := hub.AppsV1().Deployments(namespace).Get(t.Context(), "nginx", metav1.GetOptions{})
		kit.Must(t, err)
		if s := deployment.Status; s.AvailableReplicas != 2 || s.UpdatedReplicas != 2 || s.Replicas != 2 {
			return fmt.Sprintf("of the Deployment two Pods are to be available: %+v", s)
		}
		pods, err := hub.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		kit.Must(t, err)
		for _, pod := range pods.Items {
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

// The API server reaches the webhook through a Service, which leads only to the
// webhook's Pods. Without the Pods, Applications are refused, other ConfigMaps are not,
// and the agent still repairs drift.
func TestServiceLeadsToThePods(t *testing.T) {
	needsPods(t)
	namespace := newNginx(t)
	service, err := hub.CoreV1().Services("krake-system").Get(t.Context(), "krake-webhook", metav1.GetOptions{})
	kit.Must(t, err)
	if ip := net.ParseIP(service.Spec.ClusterIP); service.Spec.Type != corev1.ServiceTypeClusterIP || ip == nil {
		t.Fatalf("the Service is of type %s with address %q", service.Spec.Type, service.Spec.ClusterIP)
	}
	var addresses []string
	for _, pod := range podsOf(t, installation.WebhookDeployment) {
		addresses = append(addresses, pod.Status.PodIP)
	}
	kit.Eventually(t, func() string { return differ(addresses, endpoints(t)) })

	t.Cleanup(func() { kit.Must(t, inPods.Start(context.WithoutCancel(t.Context()), installation.WebhookDeployment)) })
	kit.Must(t, inPods.Stop(installation.WebhookDeployment))
	kit.Eventually(t, func() string { return differ(nil, endpoints(t)) })
	if err := admit(t.Context(), namespace); err == nil || !strings.Contains(err.Error(), "krake-webhook") {
		t.Errorf("without the webhook an Application is answered %v", err)
	}
	hub.Kubectl(t, "--namespace", namespace, "create", "configmap", "plain")
	hub.Change(t, kit.Services, namespace, "nginx", `{"spec": {"ports": [{"port": 80, "targetPort": 81}]}}`)
	hub.EventuallyField(t, int64(80), kit.Services, namespace, "nginx", "spec", "ports", 0, "targetPort")
	kit.Must(t, inPods.Start(t.Context(), installation.WebhookDeployment))
	kit.EventuallyNil(t, func() error { return admit(t.Context(), namespace) })
}

// endpoints returns the addresses of the webhook's Service.
func endpoints(t *testing.T) []string {
	t.Helper()
	ofWebhook := metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=krake-webhook"}
	found, err := hub.DiscoveryV1().EndpointSlices("krake-system").List(t.Context(), ofWebhook)
	kit.Must(t, err)
	var addresses []string
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready != nil && *ready {
				addresses = append(addresses, endpoint.Addresses[0])
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
		kit.Eventually(t, func() string { // the former Pods end
			remaining, err := hub.CoreV1().Pods("krake-system").List(t.Context(), metav1.ListOptions{})
			kit.Must(t, err)
			if len(remaining.Items) != len(before) {
				return fmt.Sprintf("%d Pods, want %d", len(remaining.Items), len(before))
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

// admitMeanwhile creates Applications as dry runs while do runs. None may be refused,
// or bypass the webhook.
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

// admit creates an Application as a dry run, which the webhook completes.
func admit(ctx context.Context, namespace string) error {
	offered := kit.Application(namespace, "offered", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}")
	stored, err := hub.CoreV1().ConfigMaps(namespace).Create(ctx, offered, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && stored.Data["status.last_applied_manifest"] == "" {
		return fmt.Errorf("the webhook was not called: %v", stored)
	}
	return err
}
