package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func entry(t *testing.T, user, stage, verb, resource string) string {
	t.Helper()
	var r request
	r.Stage, r.Verb, r.User.Username, r.Object.Resource = stage, verb, user, resource
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

// Only what the agent has asked for since the mark counts, and its Lease does not.
func TestCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	before := entry(t, agentUser, "ResponseComplete", "create", "services")
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	since, err := mark(path)
	if err != nil {
		t.Fatal(err)
	}
	after := before + entry(t, agentUser, "ResponseComplete", "patch", "configmaps") +
		entry(t, agentUser, "ResponseComplete", "create", "events") +
		entry(t, agentUser, "ResponseComplete", "update", "leases") +
		entry(t, agentUser, "ResponseStarted", "watch", "services") +
		entry(t, agentUser, "ResponseComplete", "watch", "services") +
		entry(t, agentUser, "ResponseComplete", "list", "services") +
		entry(t, agentUser, "ResponseComplete", "get", "") +
		entry(t, "somebody", "ResponseComplete", "delete", "services")
	if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := since.count()
	if err != nil {
		t.Fatal(err)
	}
	want := counts{"patch": 1, "event": 1, "watch": 1, "list": 1, "discovery": 1}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found.writes() != 2 || found.asked() != 3 {
		t.Errorf("%d writes, %d asked for, want 2 and 3", found.writes(), found.asked())
	}
}

func TestBroken(t *testing.T) {
	cases := []struct {
		why  string
		make func(*results)
		want string
	}{
		{"all bounds are kept", func(*results) {}, ""},
		{"a restart writes", func(r *results) { r.again["event"] = 1 }, "a restarted agent makes 1 writes: 1 event, 4 watch"},
		{"an idle agent asks", func(r *results) { r.idle["get"] = 2 }, "an idle agent makes 2 requests: 2 get, 4 list, 4 watch"},
		{"an idle agent looks what is served", func(r *results) { r.idle["discovery"] = 1 }, "an idle agent makes 1 requests: 1 discovery, 4 list, 4 watch"},
		{"what is unrelated is kept", func(r *results) { r.crowded = r.full + mostGrowth }, "the agent grows by 5242880 bytes for what is no business of its"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			r := results{Options: Options{Applications: 10, Idle: time.Minute}, again: counts{"watch": 4}, idle: counts{"watch": 4, "list": 4}}
			c.make(&r)
			got := ""
			if err := r.broken(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	r := results{
		Options: Options{Applications: 10, Unrelated: 200, Idle: time.Minute}, first: counts{"create": 30, "patch": 20},
		took: 3 * time.Second, bare: 40 << 20, full: 41 << 20, crowded: 42 << 20,
	}
	var text strings.Builder
	r.write(&text)
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"from nothing: requests 30 create, 20 patch", "requests for an Application 5.0", "memory for an object 34.1 KiB",
		"growth by 200 unrelated ConfigMaps 1.0 MiB 5.0 MiB",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

func TestOptions(t *testing.T) {
	wrong := Options{Applications: 0, Unrelated: -1}
	if err := wrong.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("complaints: %v", err)
	}
	if err := (&Options{Applications: 1, Idle: time.Second}).Validate(); err != nil {
		t.Error(err)
	}
}
