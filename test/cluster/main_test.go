package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// childVariable makes the test binary a program that starts a cluster in the folder
// that it names, and never stops it.
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isGone fails the test if the folder of a cluster exists.
func isGone(t *testing.T, folder string) {
	t.Helper()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("folder %s: %v", folder, err)
	}
}

// complains fails the test unless the error has the text. An empty text means no error.
func complains(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
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
