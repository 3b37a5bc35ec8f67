package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The cases of these tests are about one song, of which the tempo is observed.
const (
	schemas = `"mangled_observer_schema": [{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"bpm": null}}]`
	applied = `"last_applied_manifest": [{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"bpm": 1}}]`
	drifted = `"input": {"status": {` + schemas + `, ` + applied + `, "last_observed_manifest": [
		{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"bpm": 2}}]}}`
	rightDelta = `{"new": [], "modified": [0], "deleted": []}`
	wrongDelta = `{"new": [], "modified": [], "deleted": [777]}`
	// below and mistaken have a minimum of one element less than the manifest has; mistaken also has a mistake about
	// the tempo.
	below    = `"manifest": [{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"tags": ["x"]}}], "observer_schema": [{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"tags": [{"observer_schema_list_min_length": 0, "observer_schema_list_max_length": 1}]}}]`
	mistaken = `"manifest": [{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"tags": ["x"]}}], "observer_schema": [{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "a"}, "spec": {"bpm": 1, "tags": [{"observer_schema_list_min_length": 0, "observer_schema_list_max_length": 1}]}}]`
	right    = `{"id": "right", ` + drifted + `, "want": ` + rightDelta + `}`
	wrong    = `{"id": "wrong", "tags": ["some-tag"], ` + drifted + `, "want": ` + wrongDelta + `}`
	written  = `{"id": "written", "tags": ["hand", "api-normalisation"], ` + drifted + `, "want": ` + wrongDelta + `}`
)

func vectors(function string, cases ...string) string {
	return `{"format": 1, "function": "` + function + `", "cases": [` + strings.Join(cases, ",") + `]}`
}

// folder returns a folder with these texts as its files a.json, b.json, ...
func folder(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		name := string(rune('a'+i)) + ".json"
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// expect runs the command and searches its output for texts.
func expect(t *testing.T, arguments []string, code int, texts ...string) string {
	t.Helper()
	var out, problems strings.Builder
	if got := execute(arguments, strings.NewReader(""), &out, &problems); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	printed := out.String() + problems.String()
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			t.Errorf("it does not print %q", text)
		}
	}
	if t.Failed() {
		t.Log(printed)
	}
	return printed
}

func TestOwnVectorsPassByTheCommand(t *testing.T) {
	expect(t, []string{own}, 0, own+"/validate.json", " 0 failed, 0 skipped  in total")
	expect(t, []string{"--semantic", own}, 0, " 0 failed, 3 skipped (api-normalisation)  in total")
}

func TestEachFileHasALineAndAllHaveATotal(t *testing.T) {
	one, two := folder(t, vectors("delta", right, right)), folder(t, vectors("delta", right))
	expect(t, []string{one, two}, 0,
		"2 passed, 0 failed, 0 skipped  "+one+"/a.json\n", "1 passed, 0 failed, 0 skipped  "+two+"/a.json\n",
		"3 passed, 0 failed, 0 skipped  in total\n")
}

// One failure fails the run, but the other cases still run.
func TestFailure(t *testing.T) {
	dir := folder(t, vectors("delta", wrong, right), vectors("delta", right))
	expect(t, []string{dir}, 1, "FAIL delta/wrong [some-tag] (-want +got)", "777",
		"1 passed, 1 failed, 0 skipped  "+dir+"/a.json\n", "2 passed, 1 failed, 0 skipped  in total\n")
}

// Any unwanted result is a failure with its reason.
func TestFailures(t *testing.T) {
	tests := map[string]struct{ vectors, want string }{
		"no error":      {vectors("delta", `{"id": "x", `+drifted+`, "wantError": {"code": "no-schema"}}`), "no-schema"},
		"an error":      {vectors("delta", `{"id": "x", "input": {"status": {`+applied+`}}, "want": `+rightDelta+`}`), "error: no observer schema"},
		"other finding": {vectors("validate", `{"id": "x", "input": {"spec": {"manifest": [5]}}, "wantError": [{"code": "kind-missing", "path": "spec"}]}`), "kind-missing at spec"},
		"no finding":    {vectors("validate", `{"id": "x", "input": {"spec": {}}, "wantError": [{"code": "kind-missing", "path": "spec"}]}`), "kind-missing at spec"},
		"a finding":     {vectors("validate", `{"id": "x", "input": {"spec": {"manifest": [5]}}, "want": {"valid": true}}`), "not-an-object at spec"},
		"only warnings": {vectors("validate", `{"id": "x", "input": {"spec": {`+below+`}}, "wantError": [{"code": "min-below-manifest", "path": "spec.observer_schema[0].spec.tags"}]}`), "min-below-manifest at spec"},
		"no warning":    {vectors("validate", `{"id": "x", "input": {"spec": {}}, "want": {"valid": true, "warnings": [{"code": "c", "path": "p"}]}}`), "c at p"},
		"no want":       {vectors("delta", `{"id": "x", `+drifted+`, "wanted": `+rightDelta+`}`), "the case wants nothing"},
		"no steps":      {vectors("scenarios", `{"id": "x", "spec": {}}`), "no steps"},
		"unknown step":  {vectors("scenarios", `{"id": "x", "spec": {}, "steps": [{"do": "delta"}, {"do": "jump"}]}`), "step 1 jump: unknown step"},
		"wrong state":   {vectors("scenarios", `{"id": "x", "spec": {}, "steps": [{"do": "observe", "live": [], "want": {"status": {"last_observed_manifest": [777]}}}]}`), "777"},
		"lost list":     {vectors("scenarios", `{"id": "x", "spec": {}, "steps": [{"do": "delta", "want": {"status": {"no_such_list": []}}}]}`), "status"},
		"wrong step":    {vectors("scenarios", `{"id": "x", "spec": {}, "steps": [{"do": "delta", "want": `+wrongDelta+`}]}`), "777"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, []string{folder(t, test.vectors)}, 1, "(-want +got)", test.want, "0 passed, 1 failed")
		})
	}
}

// If there are errors, a case may list the warnings with them, or not.
func TestWarningsBesideErrors(t *testing.T) {
	const mistake, warning = `{"code": "value-not-null", "path": "spec.observer_schema[0].spec.bpm"}`,
		`{"code": "min-below-manifest", "path": "spec.observer_schema[0].spec.tags"}`
	for found, code := range map[string]int{mistake: 0, mistake + "," + warning: 0, warning: 1} {
		expect(t, []string{folder(t, vectors("validate", `{"id": "x", "input": {"spec": {`+mistaken+`}}, "wantError": [`+found+`]}`))}, code)
	}
}

// The state of a step has all lists, and a case names only the relevant ones.
func TestStateAfterAStep(t *testing.T) {
	expect(t, []string{folder(t, vectors("scenarios", `{"id": "x", "spec": {}, "steps": [
		{"do": "set", "path": ["status", "last_observed_manifest"], "value": [1], "want": {"status": {"last_observed_manifest": [1], "last_applied_manifest": []}}},
		{"do": "observe", "live": [], "want": {"status": {"last_observed_manifest": []}}},
		{"do": "delta", "want": {"new": [], "modified": [], "deleted": []}}]}`))}, 0)
}

// A run that cannot run everything requested is a failure.
func TestProblems(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"no folder":         {nil, "usage: "},
		"unknown flag":      {[]string{"--sematic", own}, "unknown flag: --sematic"},
		"empty folder":      {[]string{own, t.TempDir()}, "no vector files in "},
		"folder of data":    {[]string{folder(t, `{"applications": []}`)}, "no vector files in "},
		"folder not there":  {[]string{filepath.Join(t.TempDir(), "missing")}, "no vector files in "},
		"no JSON":           {[]string{folder(t, vectors("delta", right), `{"function": `)}, "b.json: "},
		"unknown function":  {[]string{folder(t, vectors("dleta", right))}, "a.json: unknown function dleta"},
		"not the structure": {[]string{folder(t, `{"function": "delta", "cases": {}}`)}, "a.json: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, test.arguments, 2, test.want) })
	}
}

// The folder may also have data for the vectors, and notes.
func TestOtherFilesArePassedOver(t *testing.T) {
	dir := folder(t, `{"about": "manifests", "applications": []}`, vectors("delta", right))
	kit.Must(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("notes"), 0o600))
	if printed := expect(t, []string{dir}, 0, "b.json"); strings.Contains(printed, "a.json") {
		t.Errorf("the data have a line:\n%s", printed)
	}
}

// Only the semantic mode skips cases, only tagged ones, and it prints the reason.
func TestSkipped(t *testing.T) {
	dir := folder(t, vectors("delta", written, right))
	expect(t, []string{"--semantic", dir}, 0,
		"1 passed, 0 failed, 1 skipped (api-normalisation)  "+dir+"/a.json\n",
		"1 passed, 0 failed, 1 skipped (api-normalisation)  in total\n")
	expect(t, []string{dir}, 1, "1 passed, 1 failed, 0 skipped  in total\n")
}

// A changed input is always a failure, even with a wanted result or error.
func TestChangedInput(t *testing.T) {
	give := map[string]function{
		"the result": func(*state) (map[string]any, error) {
			return map[string]any{"new": []any{}, "modified": []any{int64(0)}, "deleted": []any{}}, nil
		},
		"an error": func(*state) (map[string]any, error) { return nil, errors.New("wanted") },
	}
	cases := map[string]string{
		"the result": right,
		"an error":   `{"id": "x", ` + drifted + `, "wantError": {"code": "no-schema"}}`,
	}
	for name, result := range give {
		t.Run(name, func(t *testing.T) {
			runWith(t, result, vectors("delta", cases[name]), false)
			runWith(t, changing(result), vectors("delta", cases[name]), true)
		})
	}
	scenario := vectors("scenarios", `{"id": "x", "spec": {}, "steps": [
		{"do": "set", "path": ["status", "last_applied_manifest"], "value": [{"spec": {}}]}, {"do": "delta"}]}`)
	runWith(t, give["the result"], scenario, false)
	runWith(t, changing(give["the result"]), scenario, true)
}

// changing makes a function add to its input, at a deep level.
func changing(f function) function {
	return func(s *state) (map[string]any, error) {
		resource, _ := s.applied[0].(map[string]any)
		resource["spec"].(map[string]any)["added"] = "here"
		return f(s)
	}
}

func runWith(t *testing.T, delta function, text string, failed bool) {
	t.Helper()
	engine := ours{functions: map[string]function{"delta": delta}}
	if strings.Contains(text, scenarios) {
		engine.functions = maps.Clone(functions)
		engine.functions["delta"] = delta
	}
	var out strings.Builder
	got, err := runner{out: &out, engine: engine}.run([]string{folder(t, text)})
	kit.Must(t, err)
	if got != failed || failed && !strings.Contains(out.String(), "changes its input") {
		t.Errorf("failed: %t, want %t\n%s", got, failed, out.String())
	}
}
