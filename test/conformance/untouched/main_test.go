package untouched_test

import (
	"context"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the API server, with its controllers, that all tests share.
var server *kit.Plane

func TestMain(m *testing.M) {
	kit.Suite{
		Name:  "untouched",
		Start: func(ctx context.Context) (err error) { server, err = kit.SharedPlane(ctx); return err },
		Stop:  func() error { return server.Stop() },
	}.Main(m)
}
