// Package sources translates the templates and archives of Applications that are behind
// URLs.
//
// It joins package fetch, which decides what may be fetched, and package tosca, which
// translates. It does not know when a source is fetched again, nor what the Application
// says of a failure: its errors say only which rule, or which translation, failed.
package sources

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/fetch"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/pkg/tosca"
)

// Options are the hosts that the agent may fetch from.
type Options struct {
	// Hosts are those from which something may be fetched; none: nothing is.
	Hosts []string
	// Private are ranges of addresses that are not public, and allowed.
	Private []string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Hosts, "url-source-hosts", nil,
		"hosts from which templates and archives of Applications may be fetched by https: example.org, *.example.org, example.org:8443; none: nothing is fetched; wants --require-service-account")
	flags.StringSliceVar(&o.Private, "url-source-private-cidrs", nil, "ranges of addresses that these hosts may have though they are not public, such as 10.1.0.0/16")
}

// Validate reports every flag that cannot be used, in strict mode or without it.
func (o *Options) Validate(strict bool) error {
	var failures []error
	if len(o.Hosts) > 0 && !strict {
		failures = append(failures, errors.New("--url-source-hosts: only the API server checks the content of a URL, by the rights of the ServiceAccount: add --require-service-account"))
	}
	if _, err := o.fetcher(); err != nil {
		failures = append(failures, fmt.Errorf("--url-source-hosts, --url-source-private-cidrs: %w", err))
	}
	return errors.Join(failures...)
}

// fetcher makes the fetcher, nil if nothing may be fetched.
func (o *Options) fetcher() (*fetch.Fetcher, error) {
	if len(o.Hosts) == 0 {
		return nil, nil
	}
	options := fetch.Options{Hosts: o.Hosts}
	for _, text := range o.Private {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		options.AllowPrivate = append(options.AllowPrivate, prefix)
	}
	return fetch.New(options)
}

// sources are the texts behind URLs.
type sources struct{ fetcher *fetch.Fetcher }

// New makes the sources, nil where nothing may be fetched.
func New(options Options) (reconcile.Sources, error) {
	fetcher, err := options.fetcher()
	if fetcher == nil || err != nil {
		return nil, err
	}
	return sources{fetcher}, nil
}

// Translate implements reconcile.Sources.
func (s sources) Translate(ctx context.Context, source application.Source) ([]any, error) {
	session, err := s.fetcher.Session(ctx, source)
	if err != nil {
		return nil, asRefused(err)
	}
	defer session.Close()
	var missing error // a file that could not be fetched is no mistake of the template
	open := func(name string) ([]byte, error) {
		text, err := session.Open(name)
		missing = errors.Join(missing, err)
		return text, err
	}
	resources, err := translate(source, session.Entry(), open)
	switch {
	case missing != nil:
		return nil, asRefused(missing)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", reconcile.ErrTranslation, err)
	}
	return resources, nil
}

// asRefused marks an error that comes from a rule: the same request fails again.
func asRefused(err error) error {
	if errors.Is(err, fetch.ErrRefused) {
		return fmt.Errorf("%w: %w", reconcile.ErrSource, err)
	}
	return err
}

func translate(source application.Source, entry string, open func(string) ([]byte, error)) ([]any, error) {
	if !source.Archive {
		return tosca.TranslateFrom(entry, open)
	}
	archive, err := open(entry)
	if err != nil {
		return nil, err
	}
	return tosca.TranslateArchive(archive)
}
