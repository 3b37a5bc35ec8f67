package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/cli"
	"github.com/krake-observer/krake-observer/internal/habitat"
	"github.com/krake-observer/krake-observer/internal/webhook"
)

func flags(p *page, _ string) error {
	p.section("Flags", "")
	var servers []command
	for _, server := range []struct {
		name    string
		options interface{ AddFlags(*pflag.FlagSet) }
	}{{"agent", &agent.Options{}}, {"habitat", &habitat.Options{}}, {"webhook", &webhook.Options{}}} {
		set := pflag.NewFlagSet(server.name, pflag.ContinueOnError)
		server.options.AddFlags(set)
		servers = append(servers, command{name: server.name, flags: visible(set)})
	}
	p.text("\n### Servers\n\nTwo of agent, habitat and webhook, or all of them, have these flags:\n")
	flagTables(p, servers, 2)

	var commands []command
	for _, of := range plugin().Commands() {
		commands = append(commands, command{"kubectl krake " + of.Use, "\n" + of.Short + ".\n", visible(of.LocalNonPersistentFlags())})
	}
	p.text("\n### kubectl krake\n\nAll its commands have kubectl's own flags, which `kubectl options` lists. Several commands have these:\n")
	flagTables(p, commands, 3)
	return nil
}

// command is a program, or a command of one, with its flags.
type command struct {
	name, text string
	flags      []flagText
}

// flagTables describes the flags of commands; those that at least so many share, once.
func flagTables(p *page, commands []command, several int) {
	users := map[flagText]int{}
	for _, command := range commands {
		for _, flag := range command.flags {
			users[flag]++
		}
	}
	isShared := func(flag flagText) bool { return users[flag] >= several }
	shared := slices.SortedFunc(maps.Keys(users), func(a, b flagText) int {
		return cmp.Or(strings.Compare(a.flag, b.flag), strings.Compare(a.usage, b.usage))
	})
	flagTable(p, slices.DeleteFunc(shared, func(flag flagText) bool { return !isShared(flag) }))
	for _, command := range commands {
		p.text("\n### " + command.name + "\n" + command.text)
		var also []string
		own := slices.DeleteFunc(command.flags, func(flag flagText) bool {
			if isShared(flag) {
				also = append(also, code(flag.flag))
			}
			return isShared(flag)
		})
		if len(also) > 0 {
			p.text("\nFlags from above: " + strings.Join(also, "; ") + ".\n")
		}
		if len(own) > 0 {
			flagTable(p, own)
		}
	}
}

// plugin returns the command "kubectl krake" as its main builds it.
func plugin() *cobra.Command {
	return cli.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
}

// flagText is what the page says of a flag.
type flagText struct{ flag, byDefault, usage string }

// visible returns the flags of a set, by name.
func visible(set *pflag.FlagSet) (all []flagText) {
	set.VisitAll(func(flag *pflag.Flag) {
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if !flag.Hidden && flag.Name != "help" {
			all = append(all, flagText{name, defaultOf(flag), strings.TrimSpace(flag.Usage)})
		}
	})
	return all
}

func flagTable(p *page, all []flagText) {
	var rows [][]string
	for _, flag := range all {
		rows = append(rows, []string{code(flag.flag), code(flag.byDefault), flag.usage})
	}
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
