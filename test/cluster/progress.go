package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// counter counts in one goroutine for another one.
type counter struct{ n atomic.Int64 }

// add returns true, for use in conditions.
func (c *counter) add() bool {
	c.n.Add(1)
	return true
}

func (c *counter) value() int { return int(c.n.Load()) }

// follow writes the status repeatedly until stop is called: on a terminal as one line
// that changes, elsewhere as a line every ten seconds.
func follow(out io.Writer, status func() string) (stop func()) {
	interval, format, last := 10*time.Second, "cluster: %s\n", ""
	if isTerminal(out) {
		interval, format, last = time.Second, "\r\x1b[Kcluster: %s", "\r\x1b[K"
	}
	ticker, done, ended := time.NewTicker(interval), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(out, format, status())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
		fmt.Fprint(out, last)
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// eachLine runs the command and passes its stderr to known, line by line. The lines
// that known rejects explain an error.
func eachLine(command *exec.Cmd, known func(line string) bool) error {
	stderr := &lines{known: known}
	command.Stderr = stderr
	// Once the command is killed, its children may hold stderr open.
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", command.Args[1], err, lastLines(stderr.unknown.String(), 40))
	}
	return nil
}

// lines is a writer that splits its input into lines.
type lines struct {
	known   func(line string) bool
	partial string
	unknown strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.partial += string(text)
	for {
		line, rest, found := strings.Cut(l.partial, "\n")
		if !found {
			return len(text), nil
		}
		l.partial = rest
		if !l.known(line) {
			fmt.Fprintln(&l.unknown, line)
		}
	}
}

// lastLines returns the end of the text: at most n lines.
func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
