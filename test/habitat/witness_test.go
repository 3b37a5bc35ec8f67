package habitat

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/test/kit"
)

// canary begins every value of every Secret of these tests, and appears nowhere else.
const canary = "kanarienvogel"

// witness reads every version of the objects that users can read, and searches it for
// the values of Secrets.
type witness struct {
	needles [][]byte
	cancel  context.CancelFunc
	ended   func()

	mu    sync.Mutex
	seen  int
	leaks []string
}

// witnessed returns the kinds that users read, except Secrets.
func witnessed() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{kit.ConfigMaps, habitats, kit.Events, kit.StatefulSets, kit.Deployments}
}

// newWitness watches until it is stopped.
func newWitness(ctx context.Context, client dynamic.Interface) (*witness, error) {
	w := &witness{needles: needles()}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	w.cancel, w.ended = cancel, factory.Shutdown
	for _, resource := range witnessed() {
		_, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: w.see, UpdateFunc: func(_, object any) { w.see(object) },
		})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
	}
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
	return w, nil
}

func (w *witness) stop() {
	w.cancel()
	w.ended()
}

// needles are the canary, and its encoded forms in the data of a Secret, at any offset.
func needles() [][]byte {
	found := [][]byte{[]byte(canary)}
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte{'x'}, shift), canary...))
		found = append(found, []byte(text[4:len(text)-4])) // without the characters that depend on neighbours
	}
	return found
}

func (w *witness) see(thing any) {
	live, ok := thing.(*unstructured.Unstructured)
	if !ok {
		return
	}
	text, err := json.Marshal(live.Object)
	if err != nil {
		panic(err) // the value was decoded before
	}
	w.hear(live.GetKind()+" "+live.GetNamespace()+"/"+live.GetName()+", version "+live.GetResourceVersion(), text)
}

// hear searches a text.
func (w *witness) hear(where string, text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if slices.ContainsFunc(w.needles, func(needle []byte) bool { return bytes.Contains(text, needle) }) {
		w.leaks = append(w.leaks, where)
	}
}

// hearLog searches a log that is not part of the installation.
func (p *plane) hearLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	kit.Must(t, err)
	p.witness.hear(path, text)
}

// checkCanaries fails if any readable text has the value of a Secret. It logs how much
// was searched.
func (p *plane) checkCanaries() error {
	for _, path := range p.installation.Logs() {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("look for the values of Secrets: %w", err)
		}
		p.witness.hear(path, text)
	}
	p.witness.mu.Lock()
	defer p.witness.mu.Unlock()
	fmt.Fprintf(os.Stderr, "habitat: values of Secrets looked for in %d texts: found in %d\n", p.witness.seen, len(p.witness.leaks))
	if len(p.witness.leaks) > 0 || p.witness.seen == 0 {
		return fmt.Errorf("values of Secrets are told in %v", p.witness.leaks)
	}
	return nil
}
