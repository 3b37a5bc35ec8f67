// Package clitest has what the tests of the commands share: API servers with the answers that commands need, Applications
// and objects, and the files with the expected output.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Noon is the present time in these tests.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Hub is an API server with the requests that these commands need.
type Hub struct {
	T   *testing.T
	URL string

	mu         sync.Mutex
	configMaps map[string]*corev1.ConfigMap
	Leases     []coordinationv1.Lease
	// Clusters were enrolled.
	Clusters []string
	version  int
	// refused has the answer to each request for a resource.
	refused map[string]*apierrors.StatusError
	// asked are the requests so far.
	asked    []string
	watchers []chan metav1.WatchEvent
}

// NewHub starts a hub with these ConfigMaps.
func NewHub(t *testing.T, configMaps ...*corev1.ConfigMap) *Hub {
	t.Helper()
	h := &Hub{T: t, configMaps: map[string]*corev1.ConfigMap{}, refused: map[string]*apierrors.StatusError{}}
	for _, cm := range configMaps {
		h.Put(cm)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.URL = server.URL
	return h
}

// Environment returns the environment of a user of namespace demo, and the buffers of its
// output.
func (h *Hub) Environment() (e *env.Environment, out, errOut *Buffer) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer, flags.Namespace = &h.URL, new("demo")
	flags.KubeConfig = new("/dev/null")
	out, errOut = &Buffer{}, &Buffer{}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
	return &env.Environment{IOStreams: streams, Hub: flags, Now: func() time.Time { return Noon }}, out, errOut
}

// Buffer may be read while it is written.
type Buffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.Write(text)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.String()
}

// Put stores a ConfigMap, and sends an event to each watch.
func (h *Hub) Put(cm *corev1.ConfigMap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := cm.Namespace + "/" + cm.Name
	kind := watch.Added
	if h.configMaps[key] != nil {
		kind = watch.Modified
	}
	h.version++
	cm = cm.DeepCopy()
	cm.ResourceVersion = strconv.Itoa(h.version)
	h.configMaps[key] = cm
	h.tell(kind, cm)
}

// Remove deletes a ConfigMap, and sends an event to each watch.
func (h *Hub) Remove(namespace, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cm := h.configMaps[namespace+"/"+name]
	delete(h.configMaps, namespace+"/"+name)
	h.tell(watch.Deleted, cm)
}

func (h *Hub) tell(kind watch.EventType, object runtime.Object) {
	for _, watcher := range h.watchers {
		watcher <- metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: object}}
	}
}

// Watched waits for the command's watch: an earlier deletion would cause no event.
func (h *Hub) Watched() {
	h.T.Helper()
	kit.EventuallyTrue(h.T, "a watch", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.watchers) > 0
	})
}

// Expire ends all watches, as the server does for a version that is too old.
func (h *Hub) Expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(watch.Error, typed(apierrors.NewResourceExpired("too old")))
	for _, watcher := range h.watchers {
		close(watcher)
	}
	h.watchers = nil
}

// Beat sets the last heartbeat of a cluster's agent to this long ago.
func (h *Hub) Beat(cluster string, ago time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := application.HubLease(cluster)
	h.Leases = slices.DeleteFunc(h.Leases, func(l coordinationv1.Lease) bool { return l.Name == name })
	h.Leases = append(h.Leases, coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: application.AgentsNamespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			LeaseDurationSeconds: new(int32(40)), RenewTime: &metav1.MicroTime{Time: Noon.Add(-ago)},
		},
	})
}

// Refuse answers each request for a resource with an error.
func (h *Hub) Refuse(resource string, why *apierrors.StatusError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused[resource] = why
}

// Requests returns the requests so far.
func (h *Hub) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// ServeHTTP implements http.Handler.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", Noon.Format(http.TimeFormat))
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "apis" {
		parts = parts[1:]
	}
	if len(parts) < 3 { // discovery: other kinds are unknown
		NotFound(w, "", r.URL.Path)
		return
	}
	parts = parts[2:] // the version of the group
	var namespace, name string
	if parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	if r.URL.Query().Get("watch") != "" {
		h.serveWatch(w, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, r.Method+" "+r.URL.Path)
	switch refused := h.refused[parts[0]]; {
	case refused != nil:
		AnswerError(w, refused)
	case parts[0] == "leases":
		h.serveLeases(w, name)
	case parts[0] == "serviceaccounts":
		h.serveEnrolments(w, r)
	default:
		h.serveConfigMaps(w, r, namespace, name)
	}
}

func (h *Hub) serveLeases(w http.ResponseWriter, name string) {
	if name == "" {
		Answer(w, http.StatusOK, &coordinationv1.LeaseList{Items: h.Leases})
		return
	}
	at := slices.IndexFunc(h.Leases, func(l coordinationv1.Lease) bool { return l.Name == name })
	if at < 0 {
		NotFound(w, "leases", name)
		return
	}
	Answer(w, http.StatusOK, &h.Leases[at])
}

func (h *Hub) serveEnrolments(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("labelSelector") != "krake.dev/enrolment" {
		h.T.Errorf("all accounts are asked for: %s", r.URL.RawQuery)
	}
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, cluster := range h.Clusters {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{"krake.dev/enrolment": cluster}}})
	}
	Answer(w, http.StatusOK, &list)
}

// NotFound answers that there is no such object.
func NotFound(w http.ResponseWriter, resource, name string) {
	AnswerError(w, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
}

// AnswerError answers with an error.
func AnswerError(w http.ResponseWriter, err *apierrors.StatusError) {
	Answer(w, int(err.ErrStatus.Code), typed(err))
}

// typed returns an error in its wire format.
func typed(err *apierrors.StatusError) *metav1.Status {
	status := err.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

func (h *Hub) serveConfigMaps(w http.ResponseWriter, r *http.Request, namespace, name string) {
	if name != "" {
		if cm := h.configMaps[namespace+"/"+name]; cm != nil {
			Answer(w, http.StatusOK, cm)
			return
		}
		NotFound(w, "configmaps", name)
		return
	}
	var found []corev1.ConfigMap
	for _, key := range slices.Sorted(maps.Keys(h.configMaps)) {
		if cm := h.configMaps[key]; isAskedFor(r, namespace, cm) {
			found = append(found, *cm)
		}
	}
	// The token of a page is the first item that is not on it.
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(h.version)}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if found = found[from:]; limit > 0 && len(found) > limit {
		found, meta.Continue = found[:limit], strconv.Itoa(from+limit)
	}
	if !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
		Answer(w, http.StatusOK, &corev1.ConfigMapList{ListMeta: meta, Items: found})
		return
	}
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadataList"}, ListMeta: meta,
	}
	for i := range found {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: found[i].ObjectMeta})
	}
	Answer(w, http.StatusOK, &list)
}

func isAskedFor(r *http.Request, namespace string, cm *corev1.ConfigMap) bool {
	query := r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	byField, failure := fields.ParseSelector(query.Get("fieldSelector"))
	return err == nil && failure == nil && (namespace == "" || namespace == cm.Namespace) &&
		byLabel.Matches(labels.Set(cm.Labels)) && byField.Matches(fields.Set{"metadata.name": cm.Name})
}

// serveWatch sends an event for each later put: a test puts nothing before the command has
// printed the list.
func (h *Hub) serveWatch(w http.ResponseWriter, r *http.Request) {
	events := make(chan metav1.WatchEvent, 100)
	h.mu.Lock()
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for _, key := range slices.Sorted(maps.Keys(h.configMaps)) {
		if version, _ := strconv.Atoi(h.configMaps[key].ResourceVersion); version > from {
			events <- metav1.WatchEvent{Type: string(watch.Added), Object: runtime.RawExtension{Object: h.configMaps[key]}}
		}
	}
	h.watchers = append(h.watchers, events)
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event, ok := <-events:
			if !ok {
				return
			}
			if cm, isMap := event.Object.Object.(*corev1.ConfigMap); isMap {
				if !isAskedFor(r, "", cm) {
					continue
				}
				cm = cm.DeepCopy()
				cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
				event.Object.Object = cm
			}
			if err := json.NewEncoder(w).Encode(event); err != nil {
				return
			}
			flush()
		}
	}
}

// Answer answers with an object.
func Answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		fmt.Fprintln(w, err)
	}
}

var update = flag.Bool("update", false, "write what the commands print into testdata, for the author to read in the diff")

// Golden compares the output of a command with the text of a file. The command must not warn.
func (h *Hub) Golden(t *testing.T, name string, command func(*env.Environment) *cobra.Command, arguments ...string) {
	t.Helper()
	out, errOut, err := Run(t, h, command, arguments...)
	check.Must(t, err)
	check.Equal(t, name+": warnings", "", errOut)
	Golden(t, name, out)
}

// folder is that of the package: some commands run in another one.
var folder = func() string {
	path, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return path
}()

// Golden compares a text with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(folder, "testdata", name)
	if *update {
		check.Must(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	check.Must(t, err)
	check.Equal(t, path, string(want), got)
}

// Run runs a command as a user of namespace demo.
func Run(t *testing.T, h *Hub, command func(*env.Environment) *cobra.Command, arguments ...string) (out, errOut string, err error) {
	t.Helper()
	e, printed, told := h.Environment()
	err = Execute(t.Context(), e, command, arguments...)
	return printed.String(), told.String(), err
}

// Execute runs a command in an environment.
func Execute(ctx context.Context, e *env.Environment, command func(*env.Environment) *cobra.Command, arguments ...string) error {
	c := command(e)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(e.Out)
	c.SetErr(e.ErrOut)
	c.SetArgs(append([]string{}, arguments...)) // with nil, cobra would use the arguments of the test binary
	return c.ExecuteContext(ctx)
}

// Elsewhere moves an Application to another namespace.
func Elsewhere(cm *corev1.ConfigMap, namespace string) *corev1.ConfigMap {
	cm.Namespace = namespace
	return cm
}

// Stored returns a copy of a ConfigMap of namespace demo.
func (h *Hub) Stored(name string) *corev1.ConfigMap {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.configMaps["demo/"+name].DeepCopy()
}
