package hooks

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// witness records every version of every ConfigMap, Event and Secret while the tests
// run, and all other output that users can read.
type witness struct {
	cancel context.CancelFunc
	ended  context.Context

	mu      sync.Mutex
	secrets map[string]string // the place of a value, by the value
	// texts has the readable output by place; objects have one entry for each version.
	texts map[string][]byte
	logs  []string
}

func newWitness() *witness {
	ended, cancel := context.WithCancel(context.Background())
	return &witness{cancel: cancel, ended: ended, secrets: map[string]string{}, texts: map[string][]byte{}}
}

func (w *witness) stop() { w.cancel() }

// watch watches a control plane until the witness is stopped.
func (w *witness) watch(ctx context.Context, at *kit.Plane) {
	factory := informers.NewSharedInformerFactory(at.Interface, 0)
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().ConfigMaps().Informer(), factory.Core().V1().Events().Informer(), factory.Core().V1().Secrets().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { w.see(at, object) },
			UpdateFunc: func(_, object any) { w.see(at, object) },
		})
		if err != nil {
			panic(err) // the informer was not started
		}
	}
	factory.Start(w.ended.Done())
	factory.WaitForCacheSync(ctx.Done())
}

func (w *witness) see(at *kit.Plane, object any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch object := object.(type) {
	case *corev1.Secret:
		for key, value := range object.Data {
			if isSecret(key) {
				w.secrets[string(value)] = key + " of Secret " + object.Namespace + "/" + object.Name
			}
		}
	case *corev1.ConfigMap:
		where := "ConfigMap " + object.Namespace + "/" + object.Name + " at " + at.URL() + ", version " + object.ResourceVersion
		w.texts[where] = textOf(object)
	case *corev1.Event:
		w.texts["Event "+object.Namespace+"/"+object.Name+" at "+at.URL()+", version "+object.ResourceVersion] = jsonOf(object)
	}
}

// isSecret reports whether a key of the Secrets of hooks, or of their CA, has a private
// value. A certificate is public.
func isSecret(key string) bool {
	return slices.Contains([]string{
		application.TokenKey(application.Complete), application.TokenKey(application.Shutdown), application.PrivateKeyKey, corev1.TLSPrivateKeyKey,
	}, key)
}

func jsonOf(object any) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // the value was decoded before
	}
	return text
}

// textOf returns a ConfigMap with its binary data, both encoded and expanded.
func textOf(cm *corev1.ConfigMap) []byte {
	text := jsonOf(cm)
	for _, value := range cm.BinaryData {
		text = append(append(text, '\n'), value...)
		if reader, err := gzip.NewReader(bytes.NewReader(value)); err == nil {
			expanded, err := io.ReadAll(reader)
			text = append(append(text, '\n'), expanded...)
			if err != nil {
				text = append(text, err.Error()...)
			}
		}
	}
	return text
}

// hear records a text.
func (w *witness) hear(where string, text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts[where] = text
}

// ofAgent records the output of an agent before it ends.
func (w *witness) ofAgent(t *testing.T, s *spoke) {
	t.Helper()
	w.mu.Lock()
	w.logs = append(w.logs, s.Log())
	w.mu.Unlock()
	if s.Process() == nil {
		return
	}
	metrics, err := scrape(context.Background(), s.plane, "https://"+s.Metrics()+"/metrics")
	if err != nil {
		t.Errorf("read the metrics of the agent of %s: %v", s.Name, err)
	}
	w.hear("metrics of the agent of "+s.Name, metrics)
}

// scrape reads metrics with an account that may read them.
func scrape(ctx context.Context, at *kit.Plane, url string) ([]byte, error) {
	for _, arguments := range [][]string{
		{"create", "serviceaccount", "reader", "--namespace=default"},
		{"create", "clusterrole", "reader", "--verb=get", "--non-resource-url=/metrics"},
		{"create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader"},
	} {
		if text, err := kit.TryKubectl(ctx, at.Cluster, "", arguments...); err != nil && !strings.Contains(text, "already exists") {
			return nil, fmt.Errorf("kubectl %v: %w: %s", arguments, err, text)
		}
	}
	token, err := kit.TryKubectl(ctx, at.Cluster, "", "create", "token", "reader", "--namespace=default")
	if err != nil {
		return nil, fmt.Errorf("kubectl create token: %w: %s", err, token)
	}
	var last error
	for range 50 { // a refusal may be cached for a while
		code, text, err := kit.TryFetch(ctx, url, strings.TrimSpace(token))
		if err == nil && code == http.StatusOK && strings.Contains(text, "krake_") {
			return []byte(text), nil
		}
		last = errors.Join(err, fmt.Errorf("read %s: %d", url, code))
		time.Sleep(200 * time.Millisecond)
	}
	return nil, last
}

// find returns the places with a private value.
func (w *witness) find() (leaks []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for value, of := range w.secrets {
		for _, needle := range needlesOf(value) {
			for where, text := range w.texts {
				if bytes.Contains(text, needle) {
					leaks = append(leaks, where+" has "+of)
				}
			}
		}
	}
	slices.Sort(leaks)
	return slices.Compact(leaks)
}

// needlesOf returns the texts that reveal a value: a token, the lines of a key, and
// their encoded forms in a Secret.
func needlesOf(value string) [][]byte {
	const enough = 40
	var needles [][]byte
	pem := strings.HasPrefix(value, "-----BEGIN ")
	for line := range strings.SplitSeq(value, "\n") {
		if len(line) >= enough {
			needles = append(needles, []byte(line))
		}
	}
	encoded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "=")
	for n := 0; len(encoded) >= enough; n++ {
		piece := encoded[:min(len(encoded), 60)]
		encoded = encoded[len(piece):]
		if !pem || n > 0 { // all keys begin with the same piece
			needles = append(needles, []byte(piece))
		}
	}
	return needles
}

// collect reads logs and metrics of the running programs.
func (w *witness) collect(ctx context.Context) error {
	var failures []error
	urls := map[string]string{}
	for i, url := range env.installation.Metrics() {
		urls[fmt.Sprintf("webhook %d", i)] = url
	}
	if env.local.Process() != nil {
		urls["agent of local"] = "https://" + env.local.Metrics() + "/metrics"
	}
	for who, url := range urls {
		text, err := scrape(ctx, env.hub, url)
		failures = append(failures, err)
		w.hear("metrics of "+who, text)
	}
	for _, path := range slices.Concat(env.installation.Logs(), []string{env.local.Log()}, w.logs) {
		text, err := os.ReadFile(path)
		failures = append(failures, err)
		w.hear(path, text)
	}
	return errors.Join(failures...)
}

// checkCanaries fails if any readable text has a token or key of this run. It logs how
// many texts it searched.
func checkCanaries(ctx context.Context) error {
	if err := env.witness.collect(ctx); err != nil {
		return fmt.Errorf("look for tokens and keys: %w", err)
	}
	leaks := env.witness.find()
	env.witness.mu.Lock()
	defer env.witness.mu.Unlock()
	size := 0
	for _, text := range env.witness.texts {
		size += len(text)
	}
	fmt.Fprintf(os.Stderr, "hooks: %d tokens and keys looked for in %d texts of %d KiB: found in %d\n",
		len(env.witness.secrets), len(env.witness.texts), size>>10, len(leaks))
	if len(leaks) > 0 {
		return fmt.Errorf("tokens or keys are told:\n%s", strings.Join(leaks, "\n"))
	}
	return nil
}
