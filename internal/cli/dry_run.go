package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of the flag --dry-run, as in kubectl.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func dryRuns() []string { return []string{dryRunNone, dryRunClient, dryRunServer} }

// dryRunFlag is the flag --dry-run of a command.
type dryRunFlag string

func (d *dryRunFlag) addTo(command *cobra.Command, client string) {
	command.Flags().StringVar((*string)(d), "dry-run", dryRunNone, "none, client ("+client+") or server (nothing is stored)")
	must(command.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns(), cobra.ShellCompDirectiveNoFileComp)))
}

func (d dryRunFlag) check() error {
	if !slices.Contains(dryRuns(), string(d)) {
		return fmt.Errorf("--dry-run: %q has to be one of none, client, server", string(d))
	}
	return nil
}

// ofRequest is the option of a request.
func (d dryRunFlag) ofRequest() []string {
	if d == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// suffix ends a message, as in kubectl.
func (d dryRunFlag) suffix() string {
	return map[dryRunFlag]string{dryRunClient: " (dry run)", dryRunServer: " (server dry run)"}[d]
}
