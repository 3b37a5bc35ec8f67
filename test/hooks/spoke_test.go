package hooks

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// spoke is a cluster with its agent.
type spoke struct {
	*installation.Spoke

	plane *kit.Plane
	// endpoint is the address where the agent serves the hooks, as its Service would.
	endpoint string
	services *services
}

// newSpoke enrols a cluster with hooks for Applications in these namespaces of the hub.
// It does not start the agent.
func newSpoke(ctx context.Context, name string, at *kit.Plane, namespaces []string, arguments ...string) (*spoke, error) {
	endpoint, err := cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	s := &spoke{plane: at, endpoint: endpoint, services: newServices()}
	arguments = append([]string{
		"--leader-elect=false", // a killed agent is replaced at once
		"--hooks-bind-address=" + endpoint, "--services=" + s.services.server.Listener.Addr().String(),
	}, arguments...)
	enrolment := installation.Enrolment{Name: name, HubNamespaces: namespaces, EnrolArgs: []string{"--hooks"}, AgentArgs: arguments}
	if name == application.LocalCluster {
		enrolment.AgentArgs = append(enrolment.AgentArgs, "--hooks") // as in overlays/hooks
	}
	s.Spoke, err = env.installation.Enrol(ctx, at.Cluster, enrolment)
	return s, err
}

// enrol enrols a cluster for a test, with these namespaces on the hub and on the
// cluster, and starts its agent. Both end with the test.
func enrol(t *testing.T, name string, at *kit.Plane, namespaces []string, arguments ...string) *spoke {
	t.Helper()
	s, err := newSpoke(t.Context(), name, at, namespaces, arguments...)
	kit.Must(t, err)
	for _, namespace := range namespaces {
		s.grant(t, namespace)
	}
	t.Cleanup(func() {
		env.witness.ofAgent(t, s)
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
		s.services.server.Close()
		if t.Failed() {
			kit.ShowLog(s.Log())
		}
	})
	return s
}

// grant grants the agent the Secrets of hooks in a namespace of its cluster, as the
// documentation describes.
func (s *spoke) grant(t *testing.T, namespace string) {
	t.Helper()
	if s.Name == application.LocalCluster {
		s.plane.Kubectl(t, "apply", "--namespace", namespace, "-k", filepath.Join(env.installation.Manifests(), "overlays", "hooks", "namespace"))
		return
	}
	s.plane.Kubectl(t, "create", "rolebinding", "krake-hooks-"+s.Name, "--clusterrole=krake-hooks",
		"--serviceaccount=krake-agents:"+s.Name, "--namespace", namespace)
}

// through rewrites a kubeconfig file of the agent to lead through a proxy from the
// agent's next start.
func through(t *testing.T, file *string, way interface{ WriteKubeconfig(from, to string) error }) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, way.WriteKubeconfig(*file, path))
	*file = path
}

// services stands for the Services of an agent's cluster.
type services struct {
	server *httptest.Server

	mu       sync.Mutex
	backends map[string]http.Handler
	strays   []string
}

func newServices() *services {
	s := &services{backends: map[string]http.Handler{}}
	s.server = httptest.NewServer(s)
	return s
}

// put sets the program behind the Service shutdown of a namespace.
func (s *services) put(namespace string, backend http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends["shutdown."+namespace+".svc"] = backend
}

// ServeHTTP implements http.Handler: it finds the Service by its host name.
func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	s.mu.Lock()
	backend := s.backends[host]
	if backend == nil || r.Method != http.MethodPut || r.URL.Path != "/shutdown" || len(r.Header["Authorization"]) > 0 {
		s.strays = append(s.strays, r.Method+" "+r.Host+r.URL.Path)
	}
	s.mu.Unlock()
	if backend == nil {
		http.NotFound(w, r)
		return
	}
	backend.ServeHTTP(w, r)
}

// checkStrays fails if the agent has called anything except Services named shutdown, or
// in another way than allowed.
func (s *services) checkStrays(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.strays) > 0 {
		t.Errorf("the agent has called %v", slices.Compact(s.strays))
	}
}
