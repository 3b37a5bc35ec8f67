package hooks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

const (
	// Time limits: the handshake and the header, the whole request, and the answer
	// including the work for it.
	headerTime = 5 * time.Second
	readTime   = 10 * time.Second
	writeTime  = readTime + patience + 5*time.Second
	maxHeader  = 8 << 10
	// stopTime is how long open requests may take when the server stops.
	stopTime = patience
)

// ServerOptions are the options of a Server. All are required.
type ServerOptions struct {
	// Address is where to listen.
	Address      string
	Issuer       *Issuer
	Applications Applications
	Actions      Actions
	Logger       logr.Logger
	Registerer   prometheus.Registerer
	Now          func() time.Time
}

// Server is the endpoint that Pods call.
type Server struct {
	options  ServerOptions
	limits   *limits
	working  *semaphore.Weighted
	requests *prometheus.CounterVec
}

// NewServer makes a Server and registers its metric.
func NewServer(options ServerOptions) (*Server, error) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "krake_agent_hook_requests_total",
		Help: "Requests of Pods, by their action (complete, shutdown, retry, or none if it is unknown) and the code of the answer.",
	}, []string{"hook", "code"})
	if err := options.Registerer.Register(requests); err != nil {
		return nil, fmt.Errorf("register the metric of the hooks: %w", err)
	}
	return &Server{options: options, limits: newLimits(options.Now), working: semaphore.NewWeighted(atOnce), requests: requests}, nil
}

// NeedLeaderElection is for the manager: every replica has a Server. A replica that does
// not act answers that it cannot do it now.
func (s *Server) NeedLeaderElection() bool { return false }

// Start waits until there is a CA, and serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.options.Issuer.ready:
	}
	inner, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listen for hooks: %w", err)
	}
	return s.Serve(ctx, inner)
}

// Serve serves on a listener until the context ends, and then completes open requests.
func (s *Server) Serve(ctx context.Context, inner net.Listener) error {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler:                      s,
		Protocols:                    protocols,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTime,
		ReadTimeout:                  readTime,
		WriteTimeout:                 writeTime,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     slog.NewLogLogger(logr.ToSlogHandler(s.options.Logger), slog.LevelDebug),
	}
	server.SetKeepAlivesEnabled(false)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(tls.NewListener(newListener(inner), s.options.Issuer.TLS())) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve hooks: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(fmt.Errorf("stop serving hooks: %w", err), server.Close())
	}
	return nil
}
