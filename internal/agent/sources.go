package agent

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

// Sources are the options for templates and archives behind URLs.
type Sources struct {
	// Hosts are those from which something may be fetched; none: nothing is.
	Hosts []string
	// Private are ranges of addresses that are not public, and allowed.
	Private []string
}

func (s *Sources) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.Hosts, "url-source-hosts", nil,
		"hosts from which templates and archives of Applications may be fetched by https: example.org, *.example.org, example.org:8443; none: nothing is fetched; wants --require-service-account")
	flags.StringSliceVar(&s.Private, "url-source-private-ranges", nil, "ranges of addresses that these hosts may have though they are not public, such as 10.1.0.0/16")
}

func (s *Sources) validate(strict bool) error {
	var failures []error
	if len(s.Hosts) > 0 && !strict {
		failures = append(failures, errors.New("--url-source-hosts: nobody looks at what is behind a URL but the API server, at the rights of the ServiceAccount: add --require-service-account"))
	}
	if _, err := s.fetcher(); err != nil {
		failures = append(failures, fmt.Errorf("--url-source-hosts, --url-source-private-ranges: %w", err))
	}
	return errors.Join(failures...)
}

// fetcher makes the fetcher, nil if nothing may be fetched.
func (s *Sources) fetcher() (*fetch.Fetcher, error) {
	if len(s.Hosts) == 0 {
		return nil, nil
	}
	options := fetch.Options{Hosts: s.Hosts}
	for _, text := range s.Private {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		options.AllowPrivate = append(options.AllowPrivate, prefix)
	}
	return fetch.New(options)
}

// sources are what is behind URLs.
type sources struct{ fetcher *fetch.Fetcher }

// newSources gives nil where nothing may be fetched.
func newSources(options Sources) (reconcile.Sources, error) {
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
	var missing error // what could not be fetched is no mistake of the template
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

// asRefused tells what a rule forbids from what may come when it is asked for again.
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
