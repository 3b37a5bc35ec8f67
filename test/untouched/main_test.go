package untouched_test

import (
	"context"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// server is the API server, with its controllers, that all tests share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}
