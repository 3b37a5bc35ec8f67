package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/bench/workload"
)

// Options are what the user can choose.
type Options struct {
	Scenarios, Kinds, Contenders []string
	// Sizes are how many objects there are, Concurrency how many drift at once.
	Sizes, Concurrency []int
	// PerApplication is how many objects an Application has.
	PerApplication int
	Rounds, Drifts int
	// Fleet is how many Applications of three objects the scenario fleet has.
	Fleet int
	// Churn is how many updates of a status the scenario churn makes.
	Churn int
	// Unrelated is how many ConfigMaps of 256 KiB the scenario unrelated makes.
	Unrelated int
	// Seconds are how long nothing happens in idle, and one drift a second in fleet.
	Seconds int
	Quick   bool
	Strict  bool

	JSON, Markdown, Plots, Profile string
	// From is a file of --json that takes the place of measuring.
	From string

	flags *pflag.FlagSet
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Scenarios, "scenarios", names(scenarios()), "what is measured")
	flags.StringSliceVar(&o.Kinds, "kinds", []string{"configmap", "deployment"}, "what is guarded in the scenarios of many objects")
	flags.StringSliceVar(&o.Contenders, "contenders", []string{ours, gitops, poller}, "who is measured, beside the floor: "+strings.Join(subjects(), ", "))
	flags.IntSliceVar(&o.Sizes, "sizes", []int{100, 1000, 10000}, "how many objects there are; the last is that of the scenarios with one size")
	flags.IntSliceVar(&o.Concurrency, "concurrency", []int{1, 16, 64}, "how many drifts there are at once")
	flags.IntVar(&o.PerApplication, "per-application", 10, "how many objects an Application has")
	flags.IntVar(&o.Rounds, "rounds", 3, "how often each pair is measured")
	flags.IntVar(&o.Drifts, "drifts", 300, "how many drifts one measurement has, one at a time; more where there are several at once")
	flags.IntVar(&o.Fleet, "fleet", 3000, "how many Applications of three objects the scenario fleet has")
	flags.IntVar(&o.Churn, "churn", 10000, "how many updates of a status the scenario churn makes")
	flags.IntVar(&o.Unrelated, "unrelated", 200, "how many ConfigMaps of 256 KiB the scenario unrelated makes")
	flags.IntVar(&o.Seconds, "seconds", 300, "for how long nothing happens in the scenario idle, and one drift a second in fleet")
	flags.BoolVar(&o.Quick, "quick", false, "small sizes and one round, to see that it works: flags that are given count")
	flags.BoolVar(&o.Strict, "strict", false, "end with an error if a figure is beyond its bound")
	flags.StringVar(&o.JSON, "json", "", "file that all figures are written to, as JSON")
	flags.StringVar(&o.Markdown, "markdown", "", "file that the tables are written to, as Markdown")
	flags.StringVar(&o.From, "from", "", "measure nothing: take the figures from a file of --json, for --markdown, --plots and --strict")
	flags.StringVar(&o.Plots, "plots", "", "folder that the plots are written to, as SVG")
	flags.StringVar(&o.Profile, "profile", "", "folder that profiles are written to, for each scenario: CPU and heap of our agent, CPU of the API server beside each contender; slower")
	o.flags = flags
}

// Complete makes what --quick says of what was not given, and tells what cannot be
// used.
func (o *Options) Complete() error {
	if o.Quick {
		o.shrink()
	}
	failures := []error{
		known("--scenarios", o.Scenarios, names(scenarios())),
		known("--kinds", o.Kinds, names(workload.Kinds())),
		known("--contenders", o.Contenders, subjects()),
	}
	for flag, value := range map[string]int{
		"--per-application": o.PerApplication, "--rounds": o.Rounds, "--drifts": o.Drifts, "--fleet": o.Fleet,
		"--churn": o.Churn, "--unrelated": o.Unrelated, "--seconds": o.Seconds,
	} {
		if value < 1 {
			failures = append(failures, fmt.Errorf("%s: must be at least 1", flag))
		}
	}
	if len(o.Sizes) == 0 || !slices.IsSorted(o.Sizes) || o.Sizes[0] < 1 {
		failures = append(failures, errors.New("--sizes: they must be above 0, and grow"))
	}
	if len(o.Concurrency) == 0 || slices.Min(o.Concurrency) < 1 {
		failures = append(failures, errors.New("--concurrency: must be at least 1"))
	}
	if o.PerApplication > 100 {
		failures = append(failures, errors.New("--per-application: an Application has at most 100 objects"))
	}
	return errors.Join(failures...)
}

// shrink makes everything small but for what was asked for by a flag.
func (o *Options) shrink() {
	small := map[string]func(){
		"sizes": func() { o.Sizes = []int{20, 40} }, "concurrency": func() { o.Concurrency = []int{1, 8} },
		"rounds": func() { o.Rounds = 1 }, "drifts": func() { o.Drifts = 20 }, "fleet": func() { o.Fleet = 20 },
		"churn": func() { o.Churn = 100 }, "unrelated": func() { o.Unrelated = 4 }, "seconds": func() { o.Seconds = 5 },
	}
	for name, set := range small {
		if o.flags == nil || !o.flags.Changed(name) {
			set()
		}
	}
}

// known fails for words that are none of those.
func known(flag string, words, all []string) error {
	var failures []error
	for _, word := range words {
		if !slices.Contains(all, word) {
			failures = append(failures, fmt.Errorf("%s: %q is none of %s", flag, word, strings.Join(all, ", ")))
		}
	}
	return errors.Join(failures...)
}

// names are the sorted keys.
func names[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
