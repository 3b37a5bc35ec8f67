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

// Options are the user's options.
type Options struct {
	Scenarios, Kinds, Contenders []string
	// Sizes has the numbers of objects, Concurrency the numbers of concurrent drifts.
	Sizes, Concurrency []int

	PerApplication, Rounds, Drifts, Rollout, Foreign, Seconds int
	// Former is another checkout, whose agent is the contender former.
	Former string
	Quick  bool

	flags *pflag.FlagSet
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Scenarios, "scenarios", scenarioNames(), "what is measured")
	flags.StringSliceVar(&o.Kinds, "kinds", workload.Kinds(), "what is guarded in the scenarios of many objects")
	flags.StringSliceVar(&o.Contenders, "contenders", []string{ours, gitops}, "who is measured, beside the floor: "+strings.Join(subjects(), ", "))
	flags.StringVar(&o.Former, "former", "", "another checkout of this repository, whose agent is the contender former; it runs with the rights of this one")
	flags.IntSliceVar(&o.Sizes, "sizes", []int{1000, 10000}, "how many objects there are; the last is that of the scenarios with one size")
	flags.IntSliceVar(&o.Concurrency, "concurrency", []int{1, 64}, "how many drifts there are at once")
	flags.IntVar(&o.PerApplication, "per-application", 10, "how many objects an Application has")
	flags.IntVar(&o.Rounds, "rounds", 7, "how often everybody is measured")
	flags.IntVar(&o.Drifts, "drifts", 300, "how many drifts one measurement has, one at a time; more where there are several at once")
	flags.IntVar(&o.Rollout, "rollout", 30, "how many Applications roll out in the scenario rollout")
	flags.IntVar(&o.Foreign, "foreign", 100000, "how many Pods of others the scenario foreign makes, and a tenth as many Deployments")
	flags.IntVar(&o.Seconds, "seconds", 300, "how long idle waits. It limits a rollout")
	flags.BoolVar(&o.Quick, "quick", false, "small sizes and one round, to see that it works: flags that are given count")
	o.flags = flags
}

// Complete applies --quick to the options that were not given, and returns an error for
// unusable ones.
func (o *Options) Complete() error {
	if o.Quick {
		o.shrink()
	}
	failures := []error{
		anyOf("--scenarios", o.Scenarios, scenarioNames()),
		anyOf("--kinds", o.Kinds, workload.Kinds()),
		anyOf("--contenders", o.Contenders, subjects()),
	}
	numbers := map[string]int{
		"--per-application": o.PerApplication, "--rounds": o.Rounds, "--drifts": o.Drifts, "--rollout": o.Rollout,
		"--foreign": o.Foreign, "--seconds": o.Seconds,
	}
	for _, flag := range slices.Sorted(maps.Keys(numbers)) {
		if numbers[flag] < 1 {
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
	if o.has(former) != (o.Former != "") {
		failures = append(failures, errors.New("--former: it names the checkout of the contender former"))
	}
	return errors.Join(failures...)
}

// shrink makes every option small that no flag has set.
func (o *Options) shrink() {
	small := map[string]func(){
		"sizes": func() { o.Sizes = []int{20, 40} }, "concurrency": func() { o.Concurrency = []int{1, 8} },
		"rounds": func() { o.Rounds = 1 }, "drifts": func() { o.Drifts = 20 },
		"rollout": func() { o.Rollout = 2 }, "foreign": func() { o.Foreign = 100 },
		"seconds": func() { o.Seconds = 5 },
	}
	for name, set := range small {
		if !o.flags.Changed(name) {
			set()
		}
	}
}

// has reports whether a contender is to be measured.
func (o *Options) has(contender string) bool { return slices.Contains(o.Contenders, contender) }

// anyOf returns an error for words that are not in all.
func anyOf(flag string, words, all []string) error {
	var failures []error
	for _, word := range words {
		if !slices.Contains(all, word) {
			failures = append(failures, fmt.Errorf("%s: %q is none of %s", flag, word, strings.Join(all, ", ")))
		}
	}
	return errors.Join(failures...)
}
