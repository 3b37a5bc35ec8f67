package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// bare is the API server without our policies and our webhook configuration, shipped with both.
	bare    = "bare"
	shipped = "shipped"
	// settling is how long the API server may use removed policies. It reads them again every second.
	settling = 3 * time.Second
	// patchesPerDrift is how many requests a measurement has for each drift that one of the other scenarios has.
	patchesPerDrift = 5
)

// policiesScenario measures what our policies and our webhook configuration add to the PATCH of a ConfigMap that has none
// of our marks, by a client that is none of ours. Both ways take turns.
func (w *world) policiesScenario(ctx context.Context, _ *set) error {
	const namespace, name = "default", "unrelated"
	configMaps := w.client.CoreV1().ConfigMaps(namespace)
	if _, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "0"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	registration := w.client.AdmissionregistrationV1()
	hook, err := registration.MutatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	bindings, err := registration.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for round := range w.Rounds {
		fmt.Fprintf(w.log, "load: policies, round %d of %d\n", round+1, w.Rounds)
		ways := []string{shipped, bare}
		if round%2 == 1 { // the second of both may be the quicker one
			slices.Reverse(ways)
		}
		for _, way := range ways {
			change := w.putBack
			if way == bare {
				change = w.takeAway
			}
			if err := change(ctx, hook, bindings.Items); err != nil {
				return err
			}
			taken, err := w.patchUnrelated(ctx, namespace, name)
			if err != nil {
				return err
			}
			w.report.add("Unrelated-PATCH", way, taken)
		}
	}
	return w.putBack(ctx, hook, bindings.Items)
}

func (w *world) takeAway(ctx context.Context, hook *admissionregistrationv1.MutatingWebhookConfiguration, bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding) error {
	registration := w.client.AdmissionregistrationV1()
	err := client.IgnoreNotFound(registration.MutatingWebhookConfigurations().Delete(ctx, hook.Name, metav1.DeleteOptions{}))
	for i := range bindings {
		err = errors.Join(err, client.IgnoreNotFound(registration.ValidatingAdmissionPolicyBindings().Delete(ctx, bindings[i].Name, metav1.DeleteOptions{})))
	}
	return err
}

func (w *world) putBack(ctx context.Context, hook *admissionregistrationv1.MutatingWebhookConfiguration, bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding) error {
	registration := w.client.AdmissionregistrationV1()
	hook = hook.DeepCopy()
	hook.ResourceVersion = ""
	_, err := registration.MutatingWebhookConfigurations().Create(ctx, hook, metav1.CreateOptions{})
	err = client.IgnoreAlreadyExists(err)
	for i := range bindings {
		binding := bindings[i].DeepCopy()
		binding.ResourceVersion = ""
		_, failed := registration.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
		err = errors.Join(err, client.IgnoreAlreadyExists(failed))
	}
	return err
}

// patchUnrelated sends patches one after another. The first tenth does not count.
func (w *world) patchUnrelated(ctx context.Context, namespace, name string) (sample, error) {
	time.Sleep(settling)
	patch := func(n int) error {
		_, err := w.client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType,
			fmt.Appendf(nil, `{"data": {"a": "%d"}}`, n), metav1.PatchOptions{})
		return err
	}
	took := make([]float64, patchesPerDrift*w.Drifts)
	for n := range len(took) / 10 {
		if err := patch(-n - 1); err != nil {
			return nil, err
		}
	}
	meter, err := w.meter()
	if err != nil {
		return nil, err
	}
	for n := range took {
		started := time.Now()
		if err := patch(n); err != nil {
			return nil, err
		}
		took[n] = milliseconds(time.Since(started))
	}
	used, err := meter.read()
	if err != nil {
		return nil, err
	}
	return used.into(sample{
		"p50-ms": percentile(took, 50), "p90-ms": percentile(took, 90), "server-cpu-ms/op": milliseconds(used.server) / float64(len(took)),
	}), nil
}
