package clusters

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	enrolment "github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// spoke is an enrolled cluster: the control plane with its objects, and its agent.
type spoke struct {
	*installation.Spoke

	plane *kit.Plane
}

// enrol enrols a cluster whose Applications are in these namespaces of the hub, and
// ends its agent with the test. It does not start the agent.
func enrol(t *testing.T, name string, at *kit.Plane, namespaces []string, arguments ...string) *spoke {
	t.Helper()
	enrolled, err := env.installation.Enrol(t.Context(), at.Cluster, installation.Enrolment{
		Name: name, HubNamespaces: namespaces, AgentArgs: arguments,
	})
	kit.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			kit.ShowLog(enrolled.Log())
		}
	})
	t.Cleanup(func() { kit.Must(t, enrolled.Kill()) })
	return &spoke{enrolled, at}
}

// mustLive fails if the agent has ended unasked.
func (s *spoke) mustLive(t *testing.T) {
	t.Helper()
	process := s.Process()
	if process == nil {
		return
	}
	select {
	case <-process.Exited():
		if s.Process() == process { // the test has not killed it meanwhile
			t.Fatalf("the agent of %s has ended by itself: %v", s.Name, process.Wait())
		}
	default:
	}
}

// detour can stand between a client and an API server.
type detour interface {
	WriteKubeconfig(from, to string) error
}

// through rewrites a kubeconfig file of the agent to lead over a detour from the
// agent's next start.
func (s *spoke) through(t *testing.T, file *string, way detour) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, way.WriteKubeconfig(*file, path))
	*file = path
}

// newWire makes a wire to a control plane, which ends with the test.
func newWire(t *testing.T, to *kit.Plane) *installation.Wire {
	t.Helper()
	wire, err := installation.NewWire(to.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, wire.Close()) })
	return wire
}

// onHub enrols a cluster whose Applications are in these namespaces of the hub, and returns what its agent has for the hub. Nothing
// is applied to the cluster.
func onHub(t *testing.T, name string, namespaces ...string) *rest.Config {
	t.Helper()
	options := optionsFor(t, name)
	options.HubNamespaces = namespaces
	mustEnrol(t, options)
	return configOf(t, options)
}

// configOf returns what the agent makes from the files of its cluster.
func configOf(t *testing.T, options enrolment.Options) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(options.Out, "agent", "kubeconfig"))
	kit.Must(t, err)
	config.QPS = -1
	return config
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	return client
}
