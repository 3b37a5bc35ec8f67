package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Server is the API server of one cluster.
type Server struct {
	store *store

	mu     sync.Mutex
	counts map[string]int
}

// New makes a cluster with the namespaces default and kube-system.
func New() *Server {
	s := &Server{store: newStore(), counts: map[string]int{}}
	s.AddNamespace("default")
	s.AddNamespace("kube-system")
	return s
}

// Config is by what clients reach it, without a network.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://target", Transport: transport{s}, QPS: -1}
}

// AddNamespace makes a namespace, if there is none of that name.
func (s *Server) AddNamespace(name string) {
	at := keyOf("namespaces", "", name)
	// What is made of a name can be encoded.
	_, _ = s.store.change(at, func(before *object) (map[string]any, error) {
		if before != nil {
			return before.decode()
		}
		return born(at, map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": "Active"}}), nil
	})
}

// Change changes an object, as somebody else than the agent does.
func (s *Server) Change(resource, namespace, name string, change func(content map[string]any)) error {
	at := keyOf(resource, namespace, name)
	_, err := s.store.change(at, func(before *object) (map[string]any, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(at.groupResource(), name)
		}
		content, err := before.decode()
		if err == nil {
			change(content)
		}
		return content, err
	})
	return err
}

// Await waits until an object is as it is wanted to be.
func (s *Server) Await(ctx context.Context, resource, namespace, name string, is func(content map[string]any) bool) error {
	at := keyOf(resource, namespace, name)
	for {
		_, changed, _ := s.store.since(at.kind, 0)
		if found := s.store.get(at); found != nil {
			content, err := found.decode()
			if err != nil || is(content) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s %s: %w", resource, at.NamespacedName, ctx.Err())
		case <-changed:
		}
	}
}

// Objects is how many objects of a resource there are.
func (s *Server) Objects(resource string) int {
	objects, _ := s.store.list(keyOf(resource, "", "").kind)
	return len(objects)
}

// Bytes is how much all objects are, as JSON.
func (s *Server) Bytes() int64 { return s.store.bytes() }

// Requests gives how many requests there were: "patch configmaps", "discovery".
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

func (s *Server) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// keyOf gives where an object is, of a resource that is served.
func keyOf(resource, namespace, name string) key {
	all := kinds()
	at := slices.IndexFunc(all, func(k kind) bool { return k.resource == resource })
	if at < 0 {
		panic("target: there are no " + resource)
	}
	return key{all[at], types.NamespacedName{Namespace: namespace, Name: name}}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/api" || request.URL.Path == "/apis" {
		s.count("discovery")
		answer.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		s.write(answer, http.StatusOK, discovery(request.URL.Path == "/api"))
		return
	}
	at, err := locate(request.URL.Path)
	if err != nil {
		s.fail(answer, err)
		return
	}
	if err := s.serve(answer, request, at); err != nil {
		s.fail(answer, err)
	}
}

// serve answers what is asked of a resource; without a name, of all its objects.
func (s *Server) serve(answer http.ResponseWriter, request *http.Request, at key) error {
	query := request.URL.Query()
	isWatch := query.Get("watch") == "true" || query.Get("watch") == "1"
	asked := func(verb string) { s.count(verb + " " + at.resource) }
	switch {
	case request.Method == http.MethodGet && isWatch:
		asked("watch")
		return s.watch(answer, request, at)
	case request.Method == http.MethodGet && at.Name == "":
		asked("list")
		return s.list(answer, request, at)
	case request.Method == http.MethodGet:
		asked("get")
		return s.get(answer, request, at)
	case request.Method == http.MethodPost && at.Name == "":
		asked("create")
		return s.create(answer, request, at)
	case request.Method == http.MethodPut && at.Name != "":
		asked("update")
		return s.update(answer, request, at)
	case request.Method == http.MethodPatch && at.Name != "":
		asked("patch")
		return s.patch(answer, request, at)
	case request.Method == http.MethodDelete && at.Name != "":
		asked("delete")
		return s.delete(answer, request, at)
	}
	return apierrors.NewMethodNotSupported(at.groupResource(), strings.ToLower(request.Method))
}

// locate reads a path: /api/v1 or /apis/GROUP/VERSION, then
// [namespaces/NAMESPACE/]RESOURCE[/NAME]. Where a resource is both, a namespace by
// its name comes before what is in it.
func locate(path string) (key, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case parts[0] == "api":
		parts = parts[1:]
	case parts[0] == "apis" && len(parts) > 1:
		group, parts = parts[1], parts[2:]
	default:
		return key{}, unknown(path)
	}
	if len(parts) < 2 {
		return key{}, unknown(path)
	}
	version, parts := parts[0], parts[1:]
	var at key
	if parts[0] == "namespaces" && len(parts) > 2 {
		at.Namespace, parts = parts[1], parts[2:]
	}
	served, ok := kindOf(group, version, parts[0])
	if !ok || len(parts) > 2 || (at.Namespace != "" && !served.namespaced) {
		return key{}, unknown(path)
	}
	at.kind = served
	if len(parts) == 2 {
		at.Name = parts[1]
	}
	return at, nil
}

func unknown(path string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource " + path,
	}}
}

// fail answers with an error.
func (s *Server) fail(answer http.ResponseWriter, err error) {
	status := statusOf(err)
	s.write(answer, int(status.Code), status)
}

// statusOf gives an error as it is told.
func statusOf(err error) metav1.Status {
	var told apierrors.APIStatus
	if !errors.As(err, &told) {
		told = apierrors.NewInternalError(err)
	}
	status := told.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

func (s *Server) write(answer http.ResponseWriter, code int, content any) {
	if answer.Header().Get("Content-Type") == "" {
		answer.Header().Set("Content-Type", "application/json")
	}
	answer.WriteHeader(code)
	// Whoever has gone away is not told, and a status can be encoded.
	_ = json.NewEncoder(answer).Encode(content)
}

// metadataVersion is that in which lists and watches of metadata come.
var metadataVersion = schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
