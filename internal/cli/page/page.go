// Package page has the command ui, and reads what its page shows.
package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/ui"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newCommand(e)}
}

// options are those of kubectl krake ui.
type options struct {
	scope     apps.Scope
	port      uint16
	noBrowser bool
}

func newCommand(e *env.Environment) *cobra.Command {
	var flags options
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show a page with the Applications, their history, and each field of their objects",
		Long: `Serve a page on this machine, and open it in the browser. It shows the Applications of a
namespace, or of all with -A: their state and repairs as they happen, the history of each,
and each field of their objects: observed, drifting, pinned or not observed, and who has
set it. You can try out which observer schema results when fields are added or removed,
and what a manifest would change.

The page reads with your kubeconfig and your rights, and writes nothing: it shows commands
for that. It listens on 127.0.0.1 only, and its link works once. End it with Ctrl-C.

For objects on another cluster, name that cluster with --target-context or
--target-kubeconfig.`,
		Example: `  # All Applications that you may see
  kubectl krake ui -A

  # On a machine without a browser, or through a tunnel to port 8080
  kubectl krake ui --no-browser --port 8080`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command.Context(), e)
		},
	}
	flags.scope.AddTo(command)
	command.Flags().Uint16Var(&flags.port, "port", 0, "port on 127.0.0.1, 0 for a free one")
	command.Flags().BoolVar(&flags.noBrowser, "no-browser", false, "print the link, and open no browser")
	e.Target.AddFlags(command.Flags())
	return command
}

func (f options) run(ctx context.Context, e *env.Environment) error {
	if err := f.scope.Resolve(e, nil); err != nil {
		return err
	}
	config, err := e.Hub.ToRESTConfig()
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.port))))
	if err != nil {
		return fmt.Errorf("--port: %w: choose another one", err)
	}
	server := ui.New(newSource(e, f.scope), config.Host, listener.Addr().String(), e.Now)
	server.WarnBy(func(text string) { fmt.Fprintln(e.ErrOut, "Warning: "+text) })
	fmt.Fprintf(e.Out, "The page is at %s\nThe link works once. End the page with Ctrl-C.\n", server.Link())
	if !f.noBrowser {
		if err := openBrowser(ctx, server.Link()); err != nil {
			fmt.Fprintln(e.ErrOut, "Warning: no browser was opened: "+err.Error()+": open the link yourself")
		}
	}
	return server.Serve(ctx, listener)
}

// openBrowser opens a link as the desktop does.
func openBrowser(ctx context.Context, link string) error {
	openers := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}, "linux": {"xdg-open"}}
	opener, ok := openers[runtime.GOOS]
	if !ok {
		return errors.New("it is not known how, on " + runtime.GOOS)
	}
	// Neither Ctrl-C nor the end of this command may end the browser.
	command := exec.CommandContext(context.WithoutCancel(ctx), opener[0], append(opener[1:], link)...) //nolint:gosec // the link is our own
	command.SysProcAttr = ofItsOwn()
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // what a browser says is its own affair
	return nil
}
