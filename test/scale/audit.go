package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

const agentUser = "system:serviceaccount:krake-agents:local"

// audit is the API server's audit log, from a place on.
type audit struct {
	path string
	from int64
}

// mark gives the log from now on.
func mark(path string) (audit, error) {
	info, err := os.Stat(path)
	if err != nil {
		return audit{}, err
	}
	return audit{path, info.Size()}, nil
}

// request is what the log says of a request that was answered.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
}

func (r request) byAgent() bool { return r.User.Username == agentUser && r.Stage == "ResponseComplete" }

// counts are the agent's requests by what they are.
type counts map[string]int

// count counts the agent's requests, but those about its Lease.
func (a audit) count() (counts, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(a.from, io.SeekStart); err != nil {
		return nil, err
	}
	found := counts{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if r.byAgent() && r.Object.Resource != "leases" {
			found[r.class()]++
		}
	}
	return found, lines.Err()
}

// class is "create", "patch" and so on, of Events "event", and "discovery" for
// what is no resource.
func (r request) class() string {
	switch r.Object.Resource {
	case "":
		return "discovery"
	case "events":
		return "event"
	}
	return r.Verb
}

// writes are the requests that ask for a change.
func (c counts) writes() int {
	return c["create"] + c["update"] + c["patch"] + c["delete"] + c["event"]
}

// asked are the requests that an idle agent has no reason for: neither watches
// nor the lists by which they are checked.
func (c counts) asked() int {
	sum := 0
	for class, count := range c {
		if class != "watch" && class != "list" {
			sum += count
		}
	}
	return sum
}

// String gives "3000 create, 12 watch".
func (c counts) String() string {
	texts := make([]string, 0, len(c))
	for _, class := range slices.Sorted(maps.Keys(c)) {
		texts = append(texts, fmt.Sprintf("%d %s", c[class], class))
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}
