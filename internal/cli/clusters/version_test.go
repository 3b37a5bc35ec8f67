package clusters

import (
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

const (
	webhookDeployment = "/apis/apps/v1/namespaces/krake-system/deployments/krake-webhook"
	localAgent        = "/apis/apps/v1/namespaces/krake-agents/deployments/krake-agent"
	localLease        = "/apis/coordination.k8s.io/v1/namespaces/krake-agents/leases/krake-cluster-local"
)

func deploymentOf(image string, ready int) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec":   map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}},
		"status": map[string]any{"readyReplicas": ready},
	}
}

func leaseHeard(ago time.Duration) coordinationv1.Lease {
	return coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Name: "krake-cluster-local"},
		Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(time.Now().Add(-ago))), LeaseDurationSeconds: new(int32(80))},
	}
}

// Each line of version --check tells what is right, wrong, or unknown to this user.
func TestVersionCheck(t *testing.T) {
	forbidden := clitest.Failure(http.StatusForbidden, metav1.StatusReasonForbidden)
	missing := clitest.Failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	ofTheWebhook := clitest.Failure(http.StatusForbidden, metav1.StatusReasonForbidden)
	ofTheWebhook.Details = &metav1.StatusDetails{Group: application.Domain, Kind: "applications"}
	for why, c := range map[string]struct {
		with   map[string]any
		want   []string
		status int
	}{
		"all is well": {nil, []string{
			"ok       Kubernetes v1.36.3",
			"ok       the webhook completes Applications",
			"ok       the agent of cluster local was heard ",
			"ok       Deployment krake-webhook has 2 of 2 Pods ready, with image example/krake:v1",
			"ok       Deployment krake-agent has 2 of 2 Pods ready, with image example/krake:v1",
		}, 0},
		"an old Kubernetes": {map[string]any{"/version": version.Info{GitVersion: "v1.32.1"}}, []string{
			"problem  the API server has Kubernetes v1.32.1, which is not supported: upgrade it to 1.33 or later",
		}, 1},
		"no webhook": {map[string]any{"answer": corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}}, []string{
			"problem  no webhook completes a new Application in namespace demo: install it, or look at its MutatingWebhookConfiguration",
		}, 1},
		"the webhook refuses the user": {map[string]any{"dry run": ofTheWebhook}, []string{
			"ok       the webhook answers, and refuses an Application of your user in namespace demo",
		}, 0},
		"the webhook is down": {map[string]any{"dry run": clitest.Failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)}, []string{
			"problem  the API server does not create an Application: no",
		}, 1},
		"the agent is silent": {map[string]any{localLease: leaseHeard(time.Hour)}, []string{"problem  the agent of cluster local was heard at "}, 1},
		"nothing may be read": {map[string]any{localLease: forbidden, webhookDeployment: forbidden, localAgent: forbidden}, []string{
			"unknown  whether the agent of cluster local is heard: your user may not read Leases in namespace krake-agents",
			"unknown  which version runs: your user may not read Deployment krake-webhook in namespace krake-system",
			"unknown  which version runs: your user may not read Deployment krake-agent in namespace krake-agents",
		}, 0},
		"a hub without an agent": {map[string]any{localAgent: missing, localLease: missing}, []string{
			"unknown  which version runs: there is no Deployment krake-agent in namespace krake-agents",
			"unknown  whether this hub is to have an agent of its own: there is none of cluster local",
		}, 0},
		"an agent that never came": {map[string]any{localLease: missing}, []string{"problem  cluster local has no agent that has ever come to this hub: install one there"}, 1},
		"Pods are not ready": {map[string]any{webhookDeployment: deploymentOf("example/krake:v1", 1)}, []string{
			"problem  Deployment krake-webhook has 1 of 2 Pods ready, with image example/krake:v1",
		}, 1},
	} {
		t.Run(why, func(t *testing.T) {
			hub := clitest.NewCluster()
			hub["/version"] = version.Info{GitVersion: "v1.36.3"}
			hub["answer"] = corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{application.HolderLabel(application.LocalCluster): ""}},
			}
			hub[localLease] = leaseHeard(3 * time.Second)
			hub[webhookDeployment], hub[localAgent] = deploymentOf("example/krake:v1", 2), deploymentOf("example/krake:v1", 2)
			maps.Copy(hub, c.with)
			out, says, status := hub.Run(t, Commands, nil, "version", "--check")
			lines := strings.Split(out, "\n")
			check.Equal(t, "lines", 7, len(lines)) // with the version, and an empty one
			for _, want := range c.want {
				if !strings.Contains(out, "\n"+want) {
					t.Errorf("without %q:\n%s%s", want, out, says)
				}
			}
			check.Equal(t, "status", c.status, status)
			check.Equal(t, "said", "", says)
		})
	}
}

func TestVersion(t *testing.T) {
	out, _, status := clitest.Cluster{}.Run(t, Commands, nil, "version")
	if !strings.HasPrefix(out, "kubectl krake ") || !strings.HasSuffix(out, ", for Applications of format v1\n") || status != 0 {
		t.Errorf("%d: %s", status, out)
	}
	info := debug.BuildInfo{GoVersion: "go1", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}
	check.Equal(t, "version", "v1.2.3, commit abc, go1", versionOf(&info))
	check.Equal(t, "version", "of an unknown version", versionOf(nil))
}
