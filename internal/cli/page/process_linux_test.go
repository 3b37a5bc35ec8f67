package page

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Ctrl-C goes to all processes of a terminal's foreground group, and must not end the browser.
func TestTheBrowserIsInASessionOfItsOwn(t *testing.T) {
	folder := t.TempDir()
	said := filepath.Join(folder, "session")
	script := "#!/bin/sh\ncut -d ' ' -f 6 /proc/$$/stat > " + said + ".new && mv " + said + ".new " + said + "\n"
	check.Must(t, os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	check.Must(t, openBrowser(t.Context(), "http://127.0.0.1/"))
	kit.Eventually(t, func() string {
		text, err := os.ReadFile(said)
		if err != nil {
			return err.Error()
		}
		own, _, errno := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		if strings.TrimSpace(string(text)) == strconv.Itoa(int(own)) {
			t.Fatal("the browser has the session of the command")
		}
		return ""
	})
}
