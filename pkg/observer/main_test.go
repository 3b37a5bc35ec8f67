package observer

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// server is the API server that all tests share: what comes in which order is
// for a real one to show.
var server *rest.Config

func TestMain(m *testing.M) {
	code, err := run(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "observer:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopped := c.Stop(); err == nil {
			err = stopped
		}
	}()
	server = c.RESTConfig()
	return m.Run(), nil
}
