package observer

import (
	"context"
	"flag"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the API server that all tests share: what comes in which order is
// for a real one to show.
var server *rest.Config

func TestMain(m *testing.M) {
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" { // what is fuzzed needs no server, and has many processes
		os.Exit(m.Run())
	}
	var shared *cluster.Cluster
	kit.Suite{
		Name:   "observer",
		AtOnce: 8,
		Start: func(ctx context.Context) (err error) {
			if shared, err = cluster.Shared(ctx); err == nil {
				server = shared.RESTConfig()
			}
			return err
		},
		Stop: func() error {
			if shared == nil {
				return nil
			}
			return shared.Stop()
		},
	}.Main(m)
}
