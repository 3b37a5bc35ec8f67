package apply_test

import (
	"context"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// server is the API server that all tests share: what a write may do is for a
// real one to say.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}
