package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// protocolVersion is that of conformance/README.md.
const protocolVersion = 1

// maxLine is the longest line of the protocol, in bytes.
const maxLine = 64 << 20

const (
	literalMode  = "literal"
	semanticMode = "semantic"
)

// greeting is the first line of the runner.
type greeting struct {
	Protocol int    `json:"protocol"`
	Mode     string `json:"mode"`
}

// welcome is the first line of the implementation.
type welcome struct {
	Protocol  int      `json:"protocol"`
	Name      string   `json:"name"`
	Functions []string `json:"functions"`
	Error     string   `json:"error,omitempty"`
}

type request struct {
	ID       int    `json:"id"`
	Function string `json:"function"`
	Input    any    `json:"input"`
}

// answer has a result or an error.
type answer struct {
	ID     int            `json:"id"`
	Result map[string]any `json:"result,omitzero"`
	Error  string         `json:"error,omitempty"`
}

// theirs is an implementation that runs as a process.
type theirs struct {
	command   *exec.Cmd
	in        io.WriteCloser
	out       io.Closer
	lines     *bufio.Scanner // of out
	timeout   time.Duration
	functions []string
	requests  int
}

// startTheirs starts a command as an implementation in a mode. Its standard error goes to problems.
func startTheirs(ctx context.Context, command []string, mode string, timeout time.Duration, problems io.Writer) (*theirs, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stderr, c.WaitDelay = problems, time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start the implementation: %w", err)
	}
	const start = 6 // times as long: it may have to be compiled first
	t := &theirs{command: c, in: in, out: out, lines: newScanner(out), timeout: start * timeout}
	var first welcome
	err = t.exchange(greeting{Protocol: protocolVersion, Mode: mode}, &first)
	t.timeout = timeout
	switch {
	case err != nil:
	case first.Error != "":
		err = fmt.Errorf("the implementation refuses mode %s: %s", mode, first.Error)
	case first.Protocol != protocolVersion:
		err = fmt.Errorf("%w: it has protocol version %d, this runner %d", errBroken, first.Protocol, protocolVersion)
	case len(first.Functions) == 0:
		err = fmt.Errorf("%w: it offers no function", errBroken)
	}
	for _, name := range first.Functions {
		if _, known := functions[name]; !known {
			err = errors.Join(err, fmt.Errorf("%w: it offers %q, which is no function of the vectors", errBroken, name))
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.end())
	}
	t.functions = first.Functions
	return t, nil
}

func newScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	return s
}

func (t *theirs) offered() []string { return t.functions }

func (t *theirs) call(name string, input map[string]any) (map[string]any, error) {
	t.requests++
	var got answer
	if err := t.exchange(request{ID: t.requests, Function: name, Input: onTheWire(input)}, &got); err != nil {
		return nil, err
	}
	switch {
	case got.ID != t.requests:
		return nil, fmt.Errorf("%w: answer %d to request %d", errBroken, got.ID, t.requests)
	case got.Error != "" && got.Result != nil:
		return nil, fmt.Errorf("%w: answer %d has a result and an error", errBroken, got.ID)
	case got.Error != "":
		return nil, errors.New(got.Error)
	case got.Result == nil:
		return nil, fmt.Errorf("%w: answer %d has neither a result nor an error", errBroken, got.ID)
	}
	return got.Result, nil
}

// exchange writes a line and reads the next one. Both wait at most for the timeout: then the process is
// killed.
func (t *theirs) exchange(line, reply any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	late := t.killLater()
	_, err = t.in.Write(append(text, '\n'))
	answered := err == nil && t.lines.Scan()
	switch inTime := late.Stop(); {
	case !inTime:
		return fmt.Errorf("%w: no line within %s", errBroken, t.timeout)
	case !answered:
		return fmt.Errorf("%w: it has ended without an answer: %w", errBroken, errors.Join(err, t.lines.Err(), io.ErrUnexpectedEOF))
	}
	if err := utiljson.Unmarshal(t.lines.Bytes(), reply); err != nil {
		return fmt.Errorf("%w: %w: %.200s", errBroken, err, t.lines.Bytes())
	}
	return nil
}

// killLater kills the process after the timeout, and stops reading: a child of the process may go on.
func (t *theirs) killLater() *time.Timer {
	return time.AfterFunc(t.timeout, func() {
		_ = t.command.Process.Kill() // it may have ended
		_ = t.out.Close()
	})
}

// exact bounds the numbers that onTheWire changes.
const exact = 1e15

// onTheWire returns a copy of a value in which a whole number of floating point keeps its form: JSON would
// write 1.0 as 1.
func onTheWire(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = onTheWire(field)
		}
		return fields
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			items = append(items, onTheWire(item))
		}
		return items
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < exact {
			return json.Number(strconv.FormatFloat(value, 'f', 1, 64))
		}
	}
	return value
}

// end ends the implementation: its input ends, and it has to end, too.
func (t *theirs) end() error {
	defer t.killLater().Stop()
	if err := errors.Join(t.in.Close(), t.command.Wait()); err != nil {
		return fmt.Errorf("end the implementation: %w", err)
	}
	return nil
}

// serve answers a runner with the engine of this repository until the input ends.
func serve(in io.Reader, out io.Writer) error {
	lines, write := newScanner(in), json.NewEncoder(out)
	if !lines.Scan() {
		return lines.Err()
	}
	var hello greeting
	if err := utiljson.Unmarshal(lines.Bytes(), &hello); err != nil {
		return err
	}
	engine := ours{functions: functions, semantic: hello.Mode == semanticMode}
	first := welcome{Protocol: protocolVersion, Name: "krake-observer", Functions: engine.offered()}
	if !slices.Contains([]string{literalMode, semanticMode}, hello.Mode) || hello.Protocol != protocolVersion {
		first = welcome{Protocol: protocolVersion, Error: fmt.Sprintf("protocol %d with mode %q is not known", hello.Protocol, hello.Mode)}
	}
	if err := write.Encode(first); err != nil || first.Error != "" {
		return err
	}
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var asked request
		if err := utiljson.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		reply := answer{ID: asked.ID}
		var err error
		input, _ := asked.Input.(map[string]any)
		if reply.Result, err = engine.call(asked.Function, input); err != nil {
			reply.Result, reply.Error = nil, err.Error()
		}
		if err := write.Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}
