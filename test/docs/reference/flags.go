package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/cli"
	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/internal/webhook"
)

func flags(p *page, _ string) error {
	var agentOptions agent.Options
	var webhookOptions webhook.Options
	p.section("Flags", "")
	for _, command := range []struct {
		name    string
		options interface{ AddFlags(*pflag.FlagSet) }
	}{{"agent", &agentOptions}, {"webhook", &webhookOptions}} {
		set := pflag.NewFlagSet(command.name, pflag.ContinueOnError)
		command.options.AddFlags(set)
		p.text("\n### " + command.name + "\n")
		flagTable(p, set)
	}
	root := plugin()
	p.text("\n### kubectl krake\n\nOf all its commands; they are kubectl's own:\n")
	flagTable(p, root.PersistentFlags())
	for _, command := range root.Commands() {
		p.text("\n### kubectl krake " + command.Use + "\n\n" + command.Short + ".\n")
		if command.LocalNonPersistentFlags().HasAvailableFlags() {
			flagTable(p, command.LocalNonPersistentFlags())
		}
	}
	return nil
}

// plugin returns the command "kubectl krake" as its main builds it.
func plugin() *cobra.Command {
	root := cli.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	var enrolOptions enrol.Options
	var removeOptions enrol.RemoveOptions
	for _, command := range []struct {
		name, short string
		options     interface{ AddFlags(*pflag.FlagSet) }
	}{
		{"enrol", "Make a cluster a target of the hub", &enrolOptions},
		{"remove", "Take a cluster out of the hub", &removeOptions},
	} {
		made := &cobra.Command{Use: command.name + " CLUSTER", Short: command.short, Run: func(*cobra.Command, []string) {}}
		command.options.AddFlags(made.Flags())
		root.AddCommand(made)
	}
	return root
}

func flagTable(p *page, set *pflag.FlagSet) {
	var rows [][]string
	set.VisitAll(func(flag *pflag.Flag) {
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if !flag.Hidden && flag.Name != "help" {
			rows = append(rows, []string{code(name), code(defaultOf(flag)), strings.TrimSpace(flag.Usage)})
		}
	})
	p.table([]string{"flag", "default", "meaning"}, rows)
}

// defaultOf returns the default of a flag, independent of this machine.
func defaultOf(flag *pflag.Flag) string {
	switch {
	case flag.Name == "cache-dir":
		return "$HOME/.kube/cache"
	case flag.DefValue == "[]", flag.DefValue == "[ ]":
		return ""
	}
	return flag.DefValue
}
