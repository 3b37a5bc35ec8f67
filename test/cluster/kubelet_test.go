package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// What controllers wait for happens, although no Pod runs.
func TestPretendKubelet(t *testing.T) {
	if testing.Short() {
		t.Skip("make verify runs it: the suites of make test stand on it")
	}
	t.Parallel()
	provideBinaries(t)
	var log strings.Builder
	c, err := Start(t.Context(), Options{PretendKubelet: true, Log: &log})
	must(t, err)
	t.Cleanup(func() { _ = c.Stop() }) // the error is checked below
	client := newClient(t, c)

	t.Run("a Deployment rolls out, twice, and scales down", func(t *testing.T) { testRollOut(t, client) })
	t.Run("a Job comes to its end, good or bad", func(t *testing.T) { testJobs(t, client) })
	t.Run("what a test says of a Pod stays", func(t *testing.T) { testOwnStatus(t, client) })
	t.Run("nothing is left of it", func(t *testing.T) {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		isGone(t, c.Dir())
	})
	if want := "cluster: a stand-in for the kubelet declares Pods ready; none of them runs\n"; strings.Count(log.String(), want) != 1 {
		t.Errorf("the log does not say so once:\n%s", log.String())
	}
	if strings.Contains(log.String(), "declare Pod") {
		t.Errorf("not everything went well:\n%s", log.String())
	}
	if c.HasKubelet() {
		t.Error("it says that Pods run")
	}
}

// template is a Pod template with a sidecar and an init container.
func template(name string, annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: annotations},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{
				{Name: "before", Image: "a.example/before:1"},
				{Name: "beside", Image: "a.example/beside:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{{Name: "web", Image: "a.example/web:1"}},
		},
	}
}

func deploymentOf(replicas int32) *appsv1.Deployment {
	pods := template("web", nil)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: pods.Labels}, Template: pods},
	}
}

func testRollOut(t *testing.T, client kubernetes.Interface) {
	deployments, ctx := client.AppsV1().Deployments("default"), t.Context()
	deployment, err := deployments.Create(ctx, deploymentOf(5), metav1.CreateOptions{})
	must(t, err)
	for _, change := range []func(){
		func() {},
		func() { deployment.Spec.Template.Spec.Containers[0].Image = "a.example/web:2" },
		func() { deployment.Spec.Replicas = ptr.To[int32](2) },
	} {
		change()
		deployment, err = deployments.Update(ctx, deployment, metav1.UpdateOptions{})
		must(t, err)
		started, replicas := time.Now(), *deployment.Spec.Replicas
		eventually(t, 30*time.Second, "all Pods are ready, those of the present template alone", func() bool {
			deployment, err = deployments.Get(ctx, "web", metav1.GetOptions{})
			must(t, err)
			status := deployment.Status
			return status.ObservedGeneration == deployment.Generation && status.Replicas == replicas &&
				status.UpdatedReplicas == replicas && status.AvailableReplicas == replicas
		})
		t.Logf("%d Pods were ready after %s", replicas, time.Since(started).Round(time.Millisecond))
	}
	// A kubelet would take 30 seconds to end each of them.
	eventually(t, 10*time.Second, "the Pods that were deleted are gone", func() bool {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(pods.Items) == 2
	})
}

func testJobs(t *testing.T, client kubernetes.Interface) {
	for phase, want := range map[corev1.PodPhase]batchv1.JobConditionType{
		corev1.PodSucceeded: batchv1.JobComplete, corev1.PodFailed: batchv1.JobFailed,
	} {
		pods := template("once", map[string]string{PhaseAnnotation: string(phase)})
		pods.Spec.RestartPolicy = corev1.RestartPolicyNever
		job, err := client.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "once-"},
			Spec:       batchv1.JobSpec{Template: pods, BackoffLimit: ptr.To[int32](0)},
		}, metav1.CreateOptions{})
		must(t, err)
		eventually(t, 30*time.Second, "the Job is "+string(want), func() bool {
			job, err = client.BatchV1().Jobs("default").Get(t.Context(), job.Name, metav1.GetOptions{})
			must(t, err)
			return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == want && c.Status == corev1.ConditionTrue
			})
		})
	}
}

// A Pod that is to stay Pending does, and one that a test marks as not ready stays so.
func testOwnStatus(t *testing.T, client kubernetes.Interface) {
	pods, ctx := client.CoreV1().Pods("default"), t.Context()
	create := func(name string, annotations map[string]string) {
		template := template(name, annotations)
		template.Name = name
		_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{})
		must(t, err)
	}
	get := func(name string) *corev1.Pod {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		return pod
	}
	runs := func(name string) {
		eventually(t, 30*time.Second, name+" runs", func() bool { return get(name).Status.Phase == corev1.PodRunning })
	}
	create("pending", map[string]string{PhaseAnnotation: string(corev1.PodPending)})
	create("first", nil)
	runs("first")
	first := get("first")
	first.Status.ContainerStatuses[0].Ready, first.Status.ContainerStatuses[0].RestartCount = false, 3
	first, err := pods.UpdateStatus(ctx, first, metav1.UpdateOptions{})
	must(t, err)
	create("last", nil)
	runs("last") // earlier Pods are handled before it
	if again := get("first"); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("it was written again: %+v", again.Status)
	}
	if pending := get("pending"); pending.Status.Phase != corev1.PodPending || len(pending.Status.ContainerStatuses) > 0 {
		t.Errorf("it is %+v", pending.Status)
	}
}
