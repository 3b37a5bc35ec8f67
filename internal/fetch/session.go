package fetch

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Session fetches the files of one translation: a template, and the files that it imports
// from the same host. Names are paths from the root of the host, so that the importer can
// join the path ../types.yaml with that of Entry:
//
//	session, err := fetcher.Session(ctx, source)
//	...
//	defer session.Close()
//	resources, err := tosca.TranslateFrom(session.Entry(), session.Open)
//
// It is not safe for concurrent use.
type Session struct {
	fetcher *Fetcher
	source  application.Source
	address *url.URL
	// The context is that of the one translation, like that of an http.Request.
	ctx      context.Context
	cancel   context.CancelFunc
	requests int
	bytes    int64
}

// Session begins a translation, whose time runs from here.
func (f *Fetcher) Session(ctx context.Context, source application.Source) (*Session, error) {
	address, err := url.Parse(source.URL)
	if err != nil { // which would repeat the URL
		return nil, refusal("the URL cannot be read")
	}
	if address, err = f.hosts.check(address); err != nil {
		return nil, fmt.Errorf("fetch the source: %w", err)
	}
	session := &Session{fetcher: f, source: source, address: address, requests: maxRequests, bytes: f.maxBytes}
	session.ctx, session.cancel = context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("no whole answer came within %s", f.timeout))
	return session, nil
}

// Close ends the session.
func (s *Session) Close() { s.cancel() }

// Entry returns the name of the source itself.
func (s *Session) Entry() string { return strings.TrimPrefix(s.address.Path, "/") }

// Open fetches a file from the host of the source.
func (s *Session) Open(name string) ([]byte, error) {
	if name == s.Entry() {
		return s.openEntry()
	}
	// A pinned template is to give the same resources each time, and what it imports is not pinned.
	if s.source.Digest != "" {
		return nil, fmt.Errorf("fetch %s: %w", s.address, refusal("it has a digest, and what it imports has none: put them into one archive, or leave the digest out"))
	}
	address, err := s.beside(name)
	if err != nil {
		return nil, fmt.Errorf("fetch an import of %s: %w", s.address, err)
	}
	return s.open(address)
}

func (s *Session) openEntry() ([]byte, error) {
	body, err := s.open(s.address)
	if err != nil {
		return nil, err
	}
	if digest := application.DigestOf(body); s.source.Digest != "" && digest != s.source.Digest {
		return nil, fmt.Errorf("fetch %s: %w", s.address, refusal("what is there has not the digest of the URL, but "+digest+": look at it before you change the URL"))
	}
	return body, nil
}

// beside returns the URL of another file on the host.
func (s *Session) beside(name string) (*url.URL, error) {
	isForeign := func(r rune) bool { return r < ' ' || strings.ContainsRune(`?#\:`, r) }
	if !fs.ValidPath(name) || strings.ContainsFunc(name, isForeign) {
		return nil, refusal("a name is a path relative to the file that imports it, on the same host")
	}
	if suffix := path.Ext(name); suffix != ".yaml" && suffix != ".yml" {
		return nil, refusal("a name of what is imported ends in .yaml or .yml")
	}
	return &url.URL{Scheme: s.address.Scheme, Host: s.address.Host, Path: "/" + name}, nil
}

// open fetches the file at a URL, and follows redirects.
func (s *Session) open(address *url.URL) ([]byte, error) {
	next := address
	for range maxRedirects + 1 {
		var body []byte
		var err error
		if body, next, err = s.ask(next); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", address, err)
		}
		if next == nil {
			return body, nil
		}
	}
	return nil, fmt.Errorf("fetch %s: %w", address, refusal(fmt.Sprintf("it redirects more than %d times", maxRedirects)))
}

// ask sends one request. It returns the file, or the URL that the answer redirects to.
func (s *Session) ask(address *url.URL) (body []byte, next *url.URL, err error) {
	if s.requests--; s.requests < 0 {
		return nil, nil, refusal(fmt.Sprintf("the files of one template take at most %d requests", maxRequests))
	}
	request := (&http.Request{
		Method: http.MethodGet, URL: address, Host: address.Host,
		Header: http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}, "User-Agent": {"krake-observer"}},
	}).WithContext(s.ctx)
	response, err := s.fetcher.transport.RoundTrip(request)
	if err != nil {
		return nil, nil, reasonOf(s.ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // of what was only read nothing is lost
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		next, err = s.target(address, response.Header.Get("Location"))
		return nil, next, err
	}
	body, err = s.read(response)
	return body, nil, err
}

// target returns the URL that a redirect leads to. No error repeats it: it may have a
// query with credentials, as redirects to file storage do.
func (s *Session) target(from *url.URL, location string) (*url.URL, error) {
	address, err := from.Parse(location)
	if err != nil || location == "" {
		return nil, refusal("it redirects to what is no URL")
	}
	if address, err = s.fetcher.hosts.check(address); err != nil {
		return nil, fmt.Errorf("it redirects: %w", err)
	}
	return address, nil
}

// read reads the body of an answer that is no redirect.
func (s *Session) read(response *http.Response) ([]byte, error) {
	encoding := response.Header.Get("Content-Encoding")
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the host answers %d %s, and not 200", response.StatusCode, http.StatusText(response.StatusCode))
	case encoding != "" && encoding != "identity":
		return nil, refusal("the host sends it compressed, which was not asked for")
	case response.ContentLength > s.bytes:
		return nil, s.tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, s.bytes+1))
	if err != nil {
		return nil, reasonOf(s.ctx, err)
	}
	if s.bytes -= int64(len(body)); s.bytes < 0 {
		return nil, s.tooLarge()
	}
	return body, nil
}

func (s *Session) tooLarge() error {
	return refusal(fmt.Sprintf("it has, with what it imports, more than %d bytes", s.fetcher.maxBytes))
}
