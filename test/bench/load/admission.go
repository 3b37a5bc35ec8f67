package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The ways to post a ConfigMap of the same size. They take turns, and only differences between them mean something.
const (
	plain    = "plain"            // the API server alone
	trivial  = "trivial-webhook"  // through a webhook that answers with a patch of one operation
	ourPatch = "our-patch"        // through the same, with a patch as large as ours
	known    = "rights-known"     // as an Application, through our webhook, which knows the user's rights
	asked    = "rights-asked-for" // the same, and it must check them
)

const (
	// admissionNamespace has all objects. It is also the name of the group whose members may do all in it.
	admissionNamespace = "admission"
	// dryRun posts without a result.
	dryRun = "?dryRun=All"
)

// admission has what posts.
type admission struct {
	w      *world
	client *http.Client
	url    string
}

// admissionScenario measures what our webhook adds to the creation of an Application, beside a trivial one.
func (w *world) admissionScenario(ctx context.Context, _ *set) error {
	a, err := w.newAdmission(ctx)
	if err != nil {
		return err
	}
	sizes := []int{10, 100} // KiB
	closer, err := a.serveTrivial(ctx, sizes)
	if err != nil {
		return err
	}
	defer closer.Close()
	for round := range w.Rounds {
		fmt.Fprintf(w.log, "load: admission, round %d of %d\n", round+1, w.Rounds)
		for _, size := range sizes {
			for _, atOnce := range []int{1, 4} {
				for _, way := range []string{plain, trivial, ourPatch, known, asked} {
					taken, err := a.turn(ctx, way, size, atOnce, round)
					if err != nil {
						return fmt.Errorf("post %s: %w", way, err)
					}
					w.report.add(fmt.Sprintf("Admission/KiB=%d/at-once=%d", size, atOnce), way, taken)
				}
			}
		}
	}
	return nil
}

// newAdmission gives the users their rights, and has the API server call our webhook directly.
func (w *world) newAdmission(ctx context.Context) (*admission, error) {
	const objects = `apiVersion: v1
kind: Namespace
metadata: {name: admission}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: admission, name: admission}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: admission}]
`
	if text, err := kit.TryKubectl(ctx, w.cluster, objects, "apply", "-f", "-"); err != nil {
		return nil, fmt.Errorf("give the users their rights: %w\n%s", err, text)
	}
	config := w.cluster.RESTConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	a := &admission{w: w, client: client, url: config.Host + "/api/v1/namespaces/" + admissionNamespace + "/configmaps"}
	// The Service of the tests is a separate process here. In a cluster the kernel does its work, at no cost.
	_, port, err := net.SplitHostPort(w.ours.Addresses()[0])
	if err != nil {
		return nil, err
	}
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": %s}]`, port)
	_, err = w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().
		Patch(ctx, webhookConfiguration, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	// From here on, a request that is not sent directly fails.
	if err := w.ours.RefuseWebhook(); err != nil {
		return nil, err
	}
	return a, a.await(ctx, known)
}

// await waits for a minute until this way is open.
func (a *admission) await(ctx context.Context, way string) (failure error) {
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, _, failure = a.post(ctx, way, 10, "user", "first", dryRun)
		return failure == nil, nil
	})
	return failure
}

// turn posts some objects in one way, and deletes them. The request before them does not count: for any way, because the
// first after another way is slower, and for known, because it fills the cache of rights.
func (a *admission) turn(ctx context.Context, way string, size, atOnce, round int) (sample, error) {
	user := func(n int) string {
		if way == known {
			n = 0
		}
		return fmt.Sprintf("%s-%d-%d-%d-%d", way, size, atOnce, round, n)
	}
	if _, _, err := a.post(ctx, way, size, user(0), "first", dryRun); err != nil {
		return nil, err
	}
	took := make([]float64, max(4, a.w.Drifts/10))
	meter, err := a.w.meter()
	if err != nil {
		return nil, err
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range took {
		group.Go(func() error {
			_, long, err := a.post(within, way, size, user(n+1), fmt.Sprintf("object-%d", n), "")
			took[n] = milliseconds(long)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	used, err := meter.read()
	if err != nil {
		return nil, err
	}
	return used.into(sample{
			"p50-ms": percentile(took, 50), "p90-ms": percentile(took, 90), "server-cpu-ms/op": milliseconds(used.server) / float64(len(took)),
		}), a.w.client.CoreV1().ConfigMaps(admissionNamespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
}

// post posts a ConfigMap in one way, and returns the answer, and the time until its last byte. It does not use a typed
// client, whose own work would be measured.
func (a *admission) post(ctx context.Context, way string, size int, user, name, query string) (*corev1.ConfigMap, time.Duration, error) {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Data:       map[string]string{application.ManifestKey: kit.Manifest(size << 10)},
	}
	switch way {
	case trivial:
		cm.Annotations[trivialAnnotation] = ""
	case ourPatch:
		cm.Annotations[trivialAnnotation] = strconv.Itoa(size)
	case known, asked:
		cm.Annotations[application.FormatAnnotation] = application.Format
	}
	body, err := json.Marshal(cm)
	if err != nil {
		return nil, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+query, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Impersonate-User", user)
	request.Header["Impersonate-Group"] = []string{admissionNamespace, "system:authenticated"}
	started := time.Now()
	response, err := a.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	took := time.Since(started)
	if err != nil || response.StatusCode != http.StatusCreated {
		return nil, 0, errors.Join(err, fmt.Errorf("%s: %s", response.Status, text))
	}
	var answer corev1.ConfigMap
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, 0, err
	}
	return &answer, took, treated(&answer, way)
}

// treated returns an error for an object that was not handled as its way requires: what was measured would be something else.
func treated(answer *corev1.ConfigMap, way string) error {
	if got := answer.Labels[trivialLabel] != ""; got != (way == trivial || way == ourPatch) {
		return fmt.Errorf("the trivial webhook has seen it: %t", got)
	}
	if got := application.IsAdmitted(answer); got != (way == known || way == asked) {
		return fmt.Errorf("our webhook has admitted it: %t", got)
	}
	return nil
}
