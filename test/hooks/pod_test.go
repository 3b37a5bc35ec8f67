package hooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// pod has what a program in the first container of a Deployment finds: variables and
// files. A kubelet would provide them at the start of the container.
type pod struct {
	variables map[string]string
	files     map[string][]byte
}

// podOf reads what the live Deployment refers to.
func podOf(ctx context.Context, at *kit.Plane, namespace, deployment string) (pod, error) {
	live, err := at.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return pod{}, err
	}
	p, spec := pod{map[string]string{}, map[string][]byte{}}, live.Spec.Template.Spec
	for _, variable := range spec.Containers[0].Env {
		p.variables[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			values, err := valuesOf(ctx, at, namespace, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
			if err != nil {
				return pod{}, err
			}
			p.variables[variable.Name] = string(values[from.SecretKeyRef.Key])
		}
	}
	for _, mount := range spec.Containers[0].VolumeMounts {
		if err := p.mount(ctx, at, namespace, mount, spec.Volumes); err != nil {
			return pod{}, err
		}
	}
	return p, nil
}

func (p pod) mount(ctx context.Context, at *kit.Plane, namespace string, mount corev1.VolumeMount, volumes []corev1.Volume) error {
	for _, volume := range volumes {
		if volume.Name != mount.Name || volume.Secret == nil {
			continue
		}
		values, err := valuesOf(ctx, at, namespace, volume.Secret.SecretName)
		if err != nil {
			return err
		}
		for key, value := range values {
			p.files[path.Join(mount.MountPath, key)] = value
		}
	}
	return nil
}

// valuesOf reads a Secret, which must have these keys.
func valuesOf(ctx context.Context, at *kit.Plane, namespace, name string, keys ...string) (map[string][]byte, error) {
	secret, err := at.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			return nil, fmt.Errorf("Secret %s/%s has no %s", namespace, name, key)
		}
	}
	return secret.Data, nil
}

// mustStartPod waits until the Pods of a Deployment could start.
func mustStartPod(t *testing.T, at *kit.Plane, namespace, deployment string) pod {
	t.Helper()
	var started pod
	kit.Eventually(t, func() string {
		var err error
		started, err = podOf(t.Context(), at, namespace, deployment)
		return check.Message(err)
	})
	return started
}

// token returns the token of a hook.
func (p pod) token(hook application.Hook) string { return p.variables[application.TokenVariable(hook)] }

// client returns a client that trusts the endpoint by the files of a hook. It resolves
// the endpoint's name to the agent, as the cluster's DNS and Service would.
func (p pod) client(s *spoke, hook application.Hook) (*http.Client, error) {
	folder := application.CertsPath(hook)
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(p.files[path.Join(folder, application.CABundleKey)]) {
		return nil, errors.New("there is no CA bundle")
	}
	pair, err := tls.X509KeyPair(p.files[path.Join(folder, application.CertificateKey)], p.files[path.Join(folder, application.PrivateKeyKey)])
	if err != nil {
		return nil, err
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, Certificates: []tls.Certificate{pair}}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.endpoint)
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: security, DialContext: dial, DisableKeepAlives: true,
	}}, nil
}

// request is a program's request to the endpoint.
type request struct {
	url, body string
	hook      application.Hook // the hook whose files it uses
}

// says is the request of a correct program.
func (p pod) says(hook application.Hook) request {
	body, err := json.Marshal(map[string]string{"token": p.token(hook)})
	if err != nil {
		panic(err) // only texts
	}
	return request{p.variables[application.URLVariable(hook)], string(body), hook}
}

// with replaces the token of the request.
func (r request) with(token string) request {
	r.body = fmt.Sprintf(`{"token": %q}`, token)
	return r
}

// to sends the request to another hook, to retry, or to another Application.
func (r request) to(action string) request {
	r.url = r.url[:strings.LastIndex(r.url, "/")+1] + action
	return r
}

// answer is the agent's answer.
type answer struct {
	code  int
	state application.State
	text  string
}

// send sends a request.
func (p pod) send(ctx context.Context, s *spoke, r request) (answer, error) {
	client, err := p.client(s, r.hook)
	if err != nil {
		return answer{}, err
	}
	outgoing, err := http.NewRequestWithContext(ctx, http.MethodPut, r.url, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	outgoing.Header.Set("Content-Type", "application/json")
	response, err := client.Do(outgoing)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	var told struct {
		Status struct {
			State application.State `json:"state"`
		} `json:"status"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&told); err != nil {
		return answer{}, fmt.Errorf("the answer %q is no JSON: %w", body, err)
	}
	return answer{response.StatusCode, told.Status.State, string(body)}, nil
}

// mustAnswer sends a request, and fails if the answer has another code. All tests call
// from one address: a request over the rate limit is sent again.
func (p pod) mustAnswer(t *testing.T, s *spoke, what string, r request, code int) answer {
	t.Helper()
	got, err := p.send(t.Context(), s, r)
	for err == nil && got.code == http.StatusTooManyRequests {
		time.Sleep(time.Second)
		got, err = p.send(t.Context(), s, r)
	}
	switch {
	case err != nil:
		t.Errorf("%s: %v", what, err)
	case got.code != code:
		t.Errorf("%s: answered %d, want %d: %s", what, got.code, code, got.text)
	case code != http.StatusOK && !strings.Contains(got.text, `"message":"`):
		t.Errorf("%s: the answer says no way out: %s", what, got.text)
	}
	return got
}

// isHeard returns a complaint unless a request is accepted now, or the Application is
// gone.
func (p pod) isHeard(t *testing.T, s *spoke, hook application.Hook) string {
	t.Helper()
	return check.Message(p.tryHook(t.Context(), s, p.says(hook)))
}

func (p pod) tryHook(ctx context.Context, s *spoke, r request) error {
	got, err := p.send(ctx, s, r)
	if err != nil || got.code == http.StatusOK || got.code == http.StatusUnauthorized && isGone(ctx, r.url) {
		return err
	}
	return fmt.Errorf("answered %d: %s", got.code, got.text)
}

// isGone reports whether the hub has no more Application for the URL of a hook. The answer of the
// endpoint does not say it.
func isGone(ctx context.Context, url string) bool {
	steps := strings.Split(url, "/") // https://HOST/kubernetes/namespaces/NAMESPACE/applications/NAME/HOOK
	namespace, name := steps[len(steps)-4], steps[len(steps)-2]
	_, err := env.hub.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// insist repeats a request until it is accepted, or the Application is gone, as a
// program should: the agent may be down.
func (p pod) insist(ctx context.Context, s *spoke, r request) error {
	var last error
	for ctx.Err() == nil {
		if last = p.tryHook(ctx, s, r); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return fmt.Errorf("call %s: %w", r.url, errors.Join(last, context.Cause(ctx)))
}
