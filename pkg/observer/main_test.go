package observer

import (
	"context"
	"flag"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// server is the API server that all tests share: what comes in which order is
// for a real one to show.
var server *rest.Config

func TestMain(m *testing.M) {
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" { // what is fuzzed needs no server, and has many processes
		os.Exit(m.Run())
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // most tests wait for the API server
		panic(err)
	}
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}
