package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// RunTests starts a cluster for the tests of a package, hands it to use, runs
// the tests, and stops the cluster. It gives the exit code of the test program;
// what went wrong with the cluster is on standard error.
//
//	func TestMain(m *testing.M) {
//		os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
//	}
func RunTests(ctx context.Context, tests interface{ Run() int }, use func(*Cluster)) int {
	code, err := runTests(ctx, tests, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return code
}

func runTests(ctx context.Context, tests interface{ Run() int }, use func(*Cluster)) (code int, err error) {
	c, err := Start(ctx, Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	use(c)
	return tests.Run(), nil
}
