package ui

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed assets/page.css assets/page.js
var assets embed.FS

// mostBytes is the largest request that the page answers. An API server stores objects of 1.5 MiB at most.
const mostBytes = 4 << 20

// Server is the page.
type Server struct {
	source Source
	// title names the hub, and scope the Applications that are shown.
	title     string
	now       func() time.Time
	guard     *guard
	live      *live
	templates *template.Template
}

// New returns the page for a host and port, which it does not open. The title names the cluster.
func New(source Source, title, address string, now func() time.Time) *Server {
	return &Server{source: source, title: title, now: now, guard: newGuard(address), live: newLive(), templates: parse(now)}
}

// Link opens the page. It works once.
func (s *Server) Link() string { return s.guard.link() }

// WarnBy sets the function that warns the user of an attack. It must not block.
func (s *Server) WarnBy(warn func(string)) { s.guard.warn = warn }

// Handler answers the requests of the user's browser, after it has opened [Server.Link]. It refuses all
// requests for another Host, from another origin, and without the cookie that the link has set.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.overview)
	mux.HandleFunc("GET /events", s.overviewEvents)
	mux.HandleFunc("GET /application", s.application)
	mux.HandleFunc("GET /application/events", s.applicationEvents)
	mux.HandleFunc("GET /object", s.object)
	mux.HandleFunc("GET /object/events", s.objectEvents)
	mux.HandleFunc("GET /object/explain", s.explain)
	mux.HandleFunc("POST /object/schema", s.draft)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /before", s.before)
	mux.HandleFunc("POST /before", s.before)
	for path, name := range map[string]string{"/page.css": "assets/page.css", "/page.js": "assets/page.js"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, name) })
	}
	return s.guard.wrap(http.MaxBytesHandler(mux, mostBytes))
}

// Serve serves the page and watches the clusters until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the page: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error {
		s.repeat(ctx, func() error { return s.source.Follow(ctx, s.live.take) }, s.live.fail)
		return nil
	})
	return group.Wait()
}

const (
	firstRest   = time.Second
	longestRest = 30 * time.Second
)

// repeat runs a watch until the context ends. It reports each failure, and waits longer after each.
func (s *Server) repeat(ctx context.Context, run func() error, failed func(string)) {
	rest := firstRest
	for ctx.Err() == nil {
		started := s.now()
		err := run()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed(err.Error())
		}
		if s.now().Sub(started) > longestRest {
			rest = firstRest
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
		rest = min(2*rest, longestRest)
	}
}
