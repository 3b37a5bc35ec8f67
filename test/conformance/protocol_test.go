package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// actVariable makes this test program an implementation of the protocol: one of this repository, or one
// with a flaw.
const actVariable = "KRAKE_CONFORMANCE_ACT"

func TestMain(m *testing.M) {
	if name := os.Getenv(actVariable); name != "" {
		act(name)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const offersDelta = `{"protocol": 1, "name": "other", "functions": ["delta"]}`

// flaws are what an implementation prints, a line for each one that it reads. Then it ends.
var flaws = map[string][]string{
	"another version":  {`{"protocol": 2, "name": "other", "functions": ["delta"]}`},
	"offers nothing":   {`{"protocol": 1, "name": "other"}`},
	"refuses the mode": {`{"protocol": 1, "error": "not implemented"}`},
	"no JSON":          {offersDelta, "yes"},
	"another number":   {offersDelta, `{"id": 7, "result": {}}`},
	"both":             {offersDelta, `{"id": 1, "result": {}, "error": "x"}`},
	"neither":          {offersDelta, `{"id": 1}`},
	"ends":             {offersDelta},
	"offers a guess":   {`{"protocol": 1, "name": "other", "functions": ["delta", "detla"]}`},
	"an error":         {offersDelta, `{"id": 1, "error": "x"}`, `{"id": 2, "error": "x"}`},
	"a wrong result":   {offersDelta, `{"id": 1, "result": {"new": [5]}}`, `{"id": 2, "result": {"new": [], "modified": [0], "deleted": []}}`},
}

func act(name string) {
	switch name {
	case "ours":
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case "hangs":
		time.Sleep(time.Minute)
	}
	in := bufio.NewScanner(os.Stdin)
	for _, line := range flaws[name] {
		if !in.Scan() {
			return
		}
		fmt.Println(line)
	}
	if name != "ends" {
		in.Scan() // the end of the input
	}
}

// runAgainst runs the vectors against this program in a role.
func runAgainst(t *testing.T, role string, code int, arguments []string, texts ...string) {
	t.Helper()
	t.Setenv(actVariable, role)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, append([]string{"--command", program}, arguments...), code, texts...)
}

func TestOwnVectorsPassByTheProtocol(t *testing.T) {
	runAgainst(t, "ours", 0, []string{own}, own+"/scenarios.json", " 0 failed, 0 skipped  in total")
	runAgainst(t, "ours", 0, []string{"--semantic", own}, " 0 failed, 3 skipped (api-normalisation)  in total")
}

// A result that is not the wanted one is a failed case. An implementation that breaks the protocol ends the
// run.
func TestOtherImplementations(t *testing.T) {
	dir := folder(t, vectors("delta", right, right), vectors("validate", right))
	tests := map[string]struct {
		code int
		want string
	}{
		"another version":  {2, "it has protocol version 2, this runner 1"},
		"offers nothing":   {2, "it offers no function"},
		"refuses the mode": {2, "refuses mode literal: not implemented"},
		"no JSON":          {2, "case right: the implementation does not follow the protocol: "},
		"another number":   {2, "answer 7 to request 1"},
		"both":             {2, "answer 1 has a result and an error"},
		"neither":          {2, "answer 1 has neither a result nor an error"},
		"offers a guess":   {2, `it offers "detla", which is no function of the vectors`},
		"ends":             {2, "it has ended without an answer"},
		"an error":         {1, "0 passed, 2 failed, 1 skipped (1 of functions that are not offered)  in total"},
		"a wrong result":   {1, "1 passed, 1 failed, 1 skipped (1 of functions that are not offered)  in total"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { runAgainst(t, name, test.code, []string{dir}, test.want) })
	}
	t.Run("hangs", func(t *testing.T) {
		runAgainst(t, "hangs", 2, []string{"--timeout", "500ms", dir}, "no line within 3s") // the first line may take six times as long
	})
	t.Run("nothing to run", func(t *testing.T) {
		runAgainst(t, "an error", 2, []string{folder(t, vectors("validate", right))}, "no case was run")
	})
	expect(t, []string{"--command", "/no/such/program", dir}, 2, "start the implementation")
}

// The engine of this repository refuses what it does not know.
func TestServeRefuses(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"a mode":     {`{"protocol": 1, "mode": "loose"}`, `protocol 1 with mode \"loose\" is not known`},
		"a version":  {`{"protocol": 2, "mode": "literal"}`, `protocol 2 with mode \"literal\" is not known`},
		"a function": {"{\"protocol\": 1, \"mode\": \"literal\"}\n\n{\"id\": 3, \"function\": \"guess\"}", `{"id":3,"error":"unknown function guess"}`},
	} {
		var out strings.Builder
		if err := serve(strings.NewReader(test.in), &out); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: %v, %s", name, err, out.String())
		}
	}
	for _, in := range []string{"x", "{\"protocol\": 1, \"mode\": \"literal\"}\n[]"} {
		if err := serve(strings.NewReader(in), &strings.Builder{}); err == nil {
			t.Errorf("no error for %q", in)
		}
	}
	if err := serve(strings.NewReader(""), &strings.Builder{}); err != nil {
		t.Errorf("no runner: %v", err)
	}
}

// JSON has one kind of number. 1.0 must not become 1 on its way, because an engine may tell them apart.
func TestNumbersKeepTheirForm(t *testing.T) {
	text, err := json.Marshal(onTheWire(map[string]any{"a": []any{1.0, int64(1), 1.5, 1e300, "1"}, "b": nil}))
	if want := `{"a":[1.0,1,1.5,1e+300,"1"],"b":null}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

// An empty result differs from none.
func TestAnswerWithAnEmptyResult(t *testing.T) {
	text, err := json.Marshal(answer{ID: 1, Result: map[string]any{}})
	if err != nil || string(text) != `{"id":1,"result":{}}` {
		t.Errorf("an empty result is %s, %v", text, err)
	}
}
