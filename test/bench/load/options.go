package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/bench/workload"
)

// Options are the user's options.
type Options struct {
	Scenarios, Kinds, Contenders []string
	// Sizes has the numbers of objects, Concurrency the numbers of concurrent drifts.
	Sizes, Concurrency []int
	// PerApplication is the number of objects in an Application.
	PerApplication int
	Rounds, Drifts int
	// Fleet is the number of Applications of three objects in the scenario fleet.
	Fleet int
	// Rollout is the number of Applications that roll out in the scenario rollout.
	Rollout int
	// Churn is the number of status updates in the scenario churn.
	Churn int
	// Unrelated is the number of ConfigMaps of 256 KiB in the scenario unrelated.
	Unrelated int
	// Foreign is the number of Pods in the scenario foreign, which has a tenth as many Deployments.
	Foreign int
	// Seconds is the duration of idle, and of fleet with its one drift a second. It limits
	// a rollout.
	Seconds int
	// Delay is the time by which a proxy delays each request of a contender; 0: there is no
	// proxy.
	Delay  time.Duration
	Quick  bool
	Strict bool

	JSON, Markdown, Plots, Profile string
	// From is a file of --json that replaces the measurement.
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
	flags.IntVar(&o.Rounds, "rounds", 7, "how often each pair is measured")
	flags.IntVar(&o.Drifts, "drifts", 300, "how many drifts one measurement has, one at a time; more where there are several at once")
	flags.IntVar(&o.Fleet, "fleet", 3000, "how many Applications of three objects the scenario fleet has")
	flags.IntVar(&o.Rollout, "rollout", 30, "how many Applications roll out in the scenario rollout")
	flags.IntVar(&o.Churn, "churn", 10000, "how many updates of a status the scenario churn makes")
	flags.IntVar(&o.Unrelated, "unrelated", 200, "how many ConfigMaps of 256 KiB the scenario unrelated makes")
	flags.IntVar(&o.Foreign, "foreign", 100000, "how many Pods of others the scenario foreign makes, and a tenth as many Deployments")
	flags.IntVar(&o.Seconds, "seconds", 300, "for how long nothing happens in the scenario idle, and one drift a second in fleet")
	flags.DurationVar(&o.Delay, "delay", 0, "by how much a proxy delays each request of a contender, as a control plane of several machines does; 0: no proxy")
	flags.BoolVar(&o.Quick, "quick", false, "small sizes and one round, to see that it works: flags that are given count")
	flags.BoolVar(&o.Strict, "strict", false, "end with an error if a figure is beyond its bound")
	flags.StringVar(&o.JSON, "json", "", "file that all figures are written to, as JSON")
	flags.StringVar(&o.Markdown, "markdown", "", "file that the tables are written to, as Markdown")
	flags.StringVar(&o.From, "from", "", "measure nothing: take the figures from a file of --json, for --markdown, --plots and --strict")
	flags.StringVar(&o.Plots, "plots", "", "folder that the plots are written to, as SVG")
	flags.StringVar(&o.Profile, "profile", "", "folder that profiles are written to, for each scenario: CPU and heap of our agent, CPU of the API server beside each contender; slower")
	o.flags = flags
}

// Complete applies --quick to the options that were not given, and returns an error for
// unusable ones.
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
		"--per-application": o.PerApplication, "--rounds": o.Rounds, "--drifts": o.Drifts, "--fleet": o.Fleet, "--rollout": o.Rollout,
		"--churn": o.Churn, "--unrelated": o.Unrelated, "--foreign": o.Foreign, "--seconds": o.Seconds,
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

// shrink makes every option small that no flag has set.
func (o *Options) shrink() {
	small := map[string]func(){
		"sizes": func() { o.Sizes = []int{20, 40} }, "concurrency": func() { o.Concurrency = []int{1, 8} },
		"rounds": func() { o.Rounds = 1 }, "drifts": func() { o.Drifts = 20 }, "fleet": func() { o.Fleet = 20 },
		"rollout": func() { o.Rollout = 2 },
		"churn":   func() { o.Churn = 100 }, "unrelated": func() { o.Unrelated = 4 }, "foreign": func() { o.Foreign = 100 }, "seconds": func() { o.Seconds = 5 },
	}
	for name, set := range small {
		if o.flags == nil || !o.flags.Changed(name) {
			set()
		}
	}
}

// known returns an error for words that are not in all.
func known(flag string, words, all []string) error {
	var failures []error
	for _, word := range words {
		if !slices.Contains(all, word) {
			failures = append(failures, fmt.Errorf("%s: %q is none of %s", flag, word, strings.Join(all, ", ")))
		}
	}
	return errors.Join(failures...)
}

// names returns the sorted keys.
func names[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
