package clusters

import (
	"fmt"
	"os"
)

// showLog prints the end of a log: the folder is gone when the tests are.
func showLog(path string) {
	const most = 8 << 10
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return // it was never started
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		return
	}
	fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
	_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the test has failed already
}
