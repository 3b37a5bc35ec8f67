package env

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of the flag --dry-run, as in kubectl.
const (
	dryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

func dryRuns() []string { return []string{dryRunNone, DryRunClient, DryRunServer} }

// DryRun is the flag --dry-run of a command.
type DryRun string

// AddTo adds the flag; client says what --dry-run=client leaves out.
func (d *DryRun) AddTo(command *cobra.Command, client string) {
	command.Flags().StringVar((*string)(d), "dry-run", dryRunNone, "none, client ("+client+") or server (nothing is stored)")
	Must(command.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns(), cobra.ShellCompDirectiveNoFileComp)))
}

// Check returns an error for any other value.
func (d DryRun) Check() error {
	if !slices.Contains(dryRuns(), string(d)) {
		return fmt.Errorf("--dry-run: %q has to be one of none, client, server", string(d))
	}
	return nil
}

// OfRequest is the option of a request.
func (d DryRun) OfRequest() []string {
	if d == DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// Suffix ends a message, as in kubectl.
func (d DryRun) Suffix() string {
	return map[DryRun]string{DryRunClient: " (dry run)", DryRunServer: " (server dry run)"}[d]
}
