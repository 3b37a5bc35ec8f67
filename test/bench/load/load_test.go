package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// flagged parses the options of a command line.
func flagged(t *testing.T, arguments ...string) Options {
	t.Helper()
	var o Options
	flags := pflag.NewFlagSet("load", pflag.ContinueOnError)
	o.AddFlags(flags)
	kit.Must(t, flags.Parse(arguments))
	return o
}

// The smallest size of the main scenario, on a real API server: on any machine, each
// drift is repaired by one request and causes two events, and nothing else changes.
func TestQuick(t *testing.T) {
	options := flagged(t, "--quick", "--scenarios", "drift", "--kinds", "configmap", "--contenders", ours, "--sizes", "20")
	kit.Must(t, options.Complete())
	var out, log strings.Builder
	if err := run(t.Context(), options, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	measured := 0
	for line := range strings.Lines(out.String()) {
		name, result, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(name, "BenchmarkDrift/") {
			continue
		}
		measured++
		values := map[string]float64{}
		fields := strings.Fields(result)
		for i := 1; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			kit.Must(t, err)
			values[fields[i+1]] = value
		}
		for unit, want := range map[string]float64{"events/drift": 2, "requests/repair": 1, relapsed: 0, strayed: 0, unrepaired: 0} {
			if got := values[unit]; got < want-0.02 || got > want+0.02 {
				t.Errorf("%s: %g %s, want %g", name, got, unit, want)
			}
		}
		for _, unit := range []string{"p50-ms", "p99-ms", "repairs/s"} {
			if values[unit] <= 0 {
				t.Errorf("%s: %s is missing", name, unit)
			}
		}
	}
	if measured != 4 {
		t.Errorf("%d measurements, want those of floor and agent, one at a time and eight:\n%s", measured, out.String())
	}
}

// A result is a line that benchstat reads, and wrong repairs by our agent, but not those by others, are an error.
func TestReport(t *testing.T) {
	var out strings.Builder
	r := &report{out: &out}
	r.add("Drift/objects=20", ours, sample{"p50-ms": 1.5, "p99-ms": percentile(nil, 99), strayed: 0, unrepaired: 2})
	r.add("Drift/objects=20", gitops, sample{"p50-ms": percentile([]float64{4, 1, 3, 2}, 50), relapsed: 1})
	check.Equal(t, "lines", "BenchmarkDrift/objects=20/who=ours 1 1.5 p50-ms 2 unrepaired\nBenchmarkDrift/objects=20/who=gitops 1 2.5 p50-ms 1 relapsed\n", out.String())
	if len(r.wrong) != 1 || r.wrong[0].Error() != "Drift/objects=20: ours: 2 unrepaired" {
		t.Errorf("wrong: %v", r.wrong)
	}
}

func TestOptions(t *testing.T) {
	quick := flagged(t, "--quick", "--rounds", "7")
	if err := quick.Complete(); err != nil || quick.Rounds != 7 || quick.Foreign > 100 {
		t.Errorf("%v: rounds %d, foreign %d", err, quick.Rounds, quick.Foreign)
	}
	for _, wrong := range [][]string{
		{"--scenarios", "thunder"}, {"--kinds", "pod"}, {"--contenders", "somebody"}, {"--sizes", "10,5"}, {"--rounds", "0"},
		{"--concurrency", "0"}, {"--per-application", "101"}, {"--former", "../old"},
	} {
		o := flagged(t, wrong...)
		if err := o.Complete(); err == nil || !strings.Contains(err.Error(), wrong[0]) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
