package guard

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// traffic is what became of requests to an object of an Application during an outage.
type traffic struct {
	requests, warned int
	longest          time.Duration
	failures         []string
}

// during makes requests to the Deployment web of a namespace, one after the other, until an outage is over.
func during(t *testing.T, namespace string, outage func()) traffic {
	t.Helper()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	ended := make(chan traffic)
	go func() {
		var seen traffic
		for ctx.Err() == nil {
			begin := time.Now()
			said, err := patch(t.Context(), anna, namespace, `{"spec": {"replicas": 6}}`, metav1.DryRunAll)
			seen.requests++
			seen.longest = max(seen.longest, time.Since(begin))
			if err != nil {
				seen.failures = append(seen.failures, err.Error())
			}
			if len(said) > 0 {
				seen.warned++
			}
			time.Sleep(20 * time.Millisecond)
		}
		ended <- seen
	}()
	outage()
	over()
	seen := <-ended
	t.Logf("%d requests, %d with a warning, the longest took %s", seen.requests, seen.warned, seen.longest)
	if len(seen.failures) > 0 {
		t.Errorf("%d requests failed, such as: %s", len(seen.failures), seen.failures[0])
	}
	if seen.longest > patience {
		t.Errorf("a request took %s", seen.longest)
	}
	return seen
}

// The guard is down, hangs, or has a certificate that the API server does not trust. Requests then pass, also
// those that it would refuse. The agent reverts what slips through.
func TestOutages(t *testing.T) {
	kit.Long(t, "parts of the installation are down")
	namespace, strict := newWeb(t), newWeb(t, kit.Annotation("guard", "deny"))
	for _, outage := range []struct {
		what       string
		begin, end func() error
	}{
		{"it is down", installed.RefuseGuard, installed.ResumeGuard},
		{"it hangs", installed.HangGuard, installed.ResumeGuard},
	} {
		t.Run(outage.what, func(t *testing.T) {
			during(t, namespace, func() {
				kit.Must(t, outage.begin())
				slipsThrough(t, strict)
				kit.Must(t, outage.end())
			})
			settle(t, namespace)
			settle(t, strict)
		})
	}
	t.Run("its certificate is not trusted", func(t *testing.T) {
		during(t, namespace, func() {
			for range 5 { // the agent restores the CA each time
				distrust(t)
				time.Sleep(100 * time.Millisecond)
			}
		})
		settle(t, namespace)
	})
	t.Run("its configuration is deleted", func(t *testing.T) {
		during(t, namespace, func() {
			hub.Kubectl(t, "delete", "validatingwebhookconfiguration", "krake-guard")
			slipsThrough(t, strict)
			kit.Must(t, installed.Apply(t.Context()))
		})
		settle(t, namespace)
		settle(t, strict)
	})
}

// slipsThrough makes a request that the guard would refuse until it passes, and waits until the agent has reverted it.
func slipsThrough(t *testing.T, namespace string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if _, err := patch(t.Context(), anna, namespace, toEvil); err != nil {
			if !apierrors.IsForbidden(err) {
				t.Errorf("the request fails: %v", err)
			}
			return err.Error()
		}
		return ""
	})
	hub.EventuallyField(t, "web:1", kit.Deployments, namespace, "web", "spec", "template", "spec", "containers", 0, "image")
}

// distrust sets the CA of another server in the configuration.
func distrust(t *testing.T) {
	t.Helper()
	secret, err := hub.CoreV1().Secrets("krake-system").Get(t.Context(), "krake-webhook-certificate", metav1.GetOptions{})
	kit.Must(t, err)
	client := hub.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := client.Get(t.Context(), "krake-guard", metav1.GetOptions{})
	kit.Must(t, err)
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = secret.Data["ca.crt"]
	}
	if _, err := client.Update(t.Context(), configuration, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		kit.Must(t, err)
	}
}

// Every replica of the agent serves the guard: one of them ends, and none of the requests fails or is slow.
func TestReplicas(t *testing.T) {
	kit.Long(t, "agents end and start")
	namespace := newWeb(t)
	seen := during(t, namespace, func() {
		for index := range 2 {
			kit.Must(t, installed.StopAgent(index))
			kit.Must(t, installed.StartAgent(t.Context()))
			settle(t, namespace)
		}
		kit.Must(t, installed.KillAgent(0))
		time.Sleep(time.Second)
		kit.Must(t, installed.StartAgent(t.Context()))
	})
	if seen.warned*2 < seen.requests {
		t.Errorf("%d of %d requests had a warning", seen.warned, seen.requests)
	}
	settle(t, namespace)
}
