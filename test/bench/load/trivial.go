package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// webhookConfiguration is the name of our webhook's configuration.
	webhookConfiguration = "krake-webhook"
	// trivialAnnotation selects a ConfigMap for the trivial webhook. This adds
	// trivialLabel, and the prepared patch for the annotation's value.
	trivialAnnotation = "load.example.org/trivial"
	trivialLabel      = "load.example.org/seen"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// trivialWebhook decodes the object, as every webhook does, and answers with a prepared
// patch: of one operation, or with ours for an Application of that size. The difference
// of the two is the API server's cost of a larger patch and object; any further cost is
// our webhook's.
type trivialWebhook map[string][]byte

// newTrivialWebhook reads what our webhook adds to an Application of each size.
func (a *admission) newTrivialWebhook(ctx context.Context, sizes []int) (trivialWebhook, error) {
	patches, first := trivialWebhook{}, operation{"add", "/metadata/labels", map[string]string{trivialLabel: "true"}}
	var err error
	if patches[""], err = json.Marshal([]operation{first}); err != nil {
		return nil, err
	}
	for _, size := range sizes {
		answer, _, err := a.post(ctx, known, size, "user", "example", dryRun)
		if err != nil {
			return nil, err
		}
		patch := []operation{first}
		for key, value := range answer.Data {
			if key != application.ManifestKey {
				patch = append(patch, operation{"add", "/data/" + key, value})
			}
		}
		if len(answer.BinaryData) > 0 {
			patch = append(patch, operation{"add", "/binaryData", answer.BinaryData})
		}
		if patches[strconv.Itoa(size)], err = json.Marshal(patch); err != nil {
			return nil, err
		}
	}
	return patches, nil
}

// Handle implements webhook.Handler.
func (t trivialWebhook) Handle(_ context.Context, request webhook.Request) webhook.Response {
	var cm corev1.ConfigMap
	if err := json.Unmarshal(request.Object.Raw, &cm); err != nil {
		return webhook.Errored(http.StatusBadRequest, err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	return webhook.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: true, Patch: t[cm.Annotations[trivialAnnotation]], PatchType: &kind,
	}}
}

// serveTrivial serves the trivial webhook with the same framework as ours, and
// registers it as ours, except for the annotation.
func (a *admission) serveTrivial(ctx context.Context, sizes []int) (io.Closer, error) {
	trivial, err := a.newTrivialWebhook(ctx, sizes)
	if err != nil {
		return nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           &webhook.Webhook{Handler: trivial},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with the server; a missing answer shows a failure
	return server, a.registerTrivial(ctx, "https://"+listener.Addr().String(), certificate)
}

func (a *admission) registerTrivial(ctx context.Context, url string, ca []byte) error {
	configurations := a.w.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	ours, err := configurations.Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	hook := ours.Webhooks[0].DeepCopy()
	hook.Name = "trivial.load.example.org"
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
	for i, condition := range hook.MatchConditions {
		hook.MatchConditions[i].Expression = strings.ReplaceAll(condition.Expression, application.FormatAnnotation, trivialAnnotation)
	}
	_, err = configurations.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "load-trivial"}, Webhooks: []admissionregistrationv1.MutatingWebhook{*hook},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("register the trivial webhook: %w", err)
	}
	return a.await(ctx, trivial)
}
