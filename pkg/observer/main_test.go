package observer

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// plane has the API server that all tests share: only a real one shows the order of events.
var plane *kit.Plane

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // most tests wait for the API server
		panic(err)
	}
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) {
		var err error
		if plane, err = kit.NewPlane(c); err != nil {
			panic(err)
		}
	}))
}
