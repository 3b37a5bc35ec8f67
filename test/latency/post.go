package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/latency/workload"
)

// kind is a way to post a ConfigMap.
type kind int

const (
	plain   kind = iota // the API server alone
	trivial             // through the trivial webhook
	large               // through the trivial webhook, with a patch as large as ours
	cached              // through ours, which knows the user's rights
	asked               // through ours, which must check them
)

func kinds() []kind { return []kind{plain, trivial, large, cached, asked} }

func (k kind) String() string {
	return [...]string{"plain", "trivial webhook", "trivial webhook, our patch", "Application, rights known", "Application, rights asked for"}[k]
}

// isOurs reports whether our webhook is called.
func (k kind) isOurs() bool { return k == cached || k == asked }

// smallest is the size of objects that only need to reach a webhook.
const smallest = 10

// request is a ConfigMap to post, with its user.
type request struct {
	kind kind
	user string
	body []byte
}

// newRequest makes a request. Bodies of the same kind and size differ only in the name.
// Sizes are in KiB.
func newRequest(k kind, size int, name string) request {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{application.ManifestKey: workload.Manifest(size<<10, 1)},
	}
	switch {
	case k == trivial:
		cm.Annotations = map[string]string{trivialAnnotation: ""}
	case k == large:
		cm.Annotations = map[string]string{trivialAnnotation: strconv.Itoa(size)}
	case k.isOurs():
		cm.Annotations = map[string]string{application.FormatAnnotation: application.Format}
	}
	body, err := json.Marshal(cm)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return request{kind: k, user: name, body: body}
}

// poster posts as a user. It does not use a typed client, whose own work would be
// measured.
type poster struct {
	client *http.Client
	url    string
}

// answer is the result of a request, with the time until the last byte.
type answer struct {
	cm   corev1.ConfigMap
	took time.Duration
}

const dryRun = "?dryRun=All"

// post posts the request, and checks that the object was handled as its kind requires.
func (p *poster) post(ctx context.Context, r request, query string) (answer, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+query, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/json")
	post.Header.Set("Impersonate-User", r.user)
	post.Header["Impersonate-Group"] = []string{group, "system:authenticated"}
	started := time.Now()
	response, err := p.client.Do(post)
	if err != nil {
		return answer{}, fmt.Errorf("post %s: %w", r.kind, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	a := answer{took: time.Since(started)}
	if err != nil {
		return answer{}, fmt.Errorf("post %s: %w", r.kind, err)
	}
	if response.StatusCode != http.StatusCreated {
		return answer{}, fmt.Errorf("post %s: %s: %s", r.kind, response.Status, text)
	}
	if err := json.Unmarshal(text, &a.cm); err != nil {
		return answer{}, fmt.Errorf("read the answer of %s: %w", r.kind, err)
	}
	return a, nil
}

// treated returns an error for an object that was not handled as its kind requires.
func (a answer) treated(k kind) error {
	if got := a.cm.Labels[trivialLabel] != ""; got != (k == trivial || k == large) {
		return fmt.Errorf("%s: the trivial webhook has seen it: %t", k, got)
	}
	if got := application.IsAdmitted(&a.cm); got != k.isOurs() {
		return fmt.Errorf("%s: the webhook has admitted it: %t", k, got)
	}
	return nil
}
