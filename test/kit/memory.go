package kit

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// PeakMemory returns the most memory that a process had, in bytes. It is unknown on
// systems that do not report it, and the log has that.
func PeakMemory(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Logf("the peak of memory is not known here: %v", err)
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
	Must(t, err)
	return kilobytes << 10
}
