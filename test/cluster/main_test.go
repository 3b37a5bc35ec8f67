package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childVariable has the test binary be a program that starts a cluster in the
// folder that it names, and that never stops it.
const childVariable = "KRAKE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		startAndStay(dir)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait for processes
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func startAndStay(dir string) {
	c, err := Start(context.Background(), Options{Dir: dir})
	if err == nil {
		// A grandchild, which this program does not know.
		_, err = c.Run("grandparent", exec.Command("/bin/sh", "-c", "sleep 1000 & wait"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

// eventually waits until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}
