package hub

import (
	"context"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// server is the API server that the tests of the resync share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}
