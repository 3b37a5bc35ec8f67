// Package options has the flags that all servers share: how to reach a cluster, how to
// log, and where to serve metrics. It also has what several servers
// do with lists of namespaces.
package options

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Server is the flags of every server.
type Server struct {
	Connection Connection
	Logging    Logging
	Metrics    Metrics
	// HealthAddress is where to answer /healthz and /readyz; "0" is nowhere.
	HealthAddress string
}

// AddFlags adds the flags with their defaults.
func (s *Server) AddFlags(flags *pflag.FlagSet, metrics string) {
	s.Connection.AddFlags(flags)
	s.Logging.AddFlags(flags)
	s.Metrics.AddFlags(flags, metrics)
	flags.StringVar(&s.HealthAddress, "health-probe-bind-address", ":8081", `where to answer /healthz and /readyz; "0": nowhere`)
}

// Connection says how to reach a cluster.
type Connection struct {
	// Kubeconfig is a file. If it is empty, the ServiceAccount of the Pod is used.
	Kubeconfig string
}

// AddFlags adds the flag --kubeconfig.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "file that says how to reach the cluster (default: the ServiceAccount of the Pod)")
}

// Config returns the client configuration. It limits no requests, because the priority and
// fairness of the API server does.
func (c *Connection) Config(userAgent string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configure the connection: %w", err)
	}
	config.QPS = -1
	return rest.AddUserAgent(config, userAgent), nil
}

// Logging says from which level on, and in which format, is logged.
type Logging struct {
	Level  string
	Format string
}

// AddFlags adds the flags --log-level and --log-format.
func (l *Logging) AddFlags(flags *pflag.FlagSet) {
	l.Level, l.Format = "info", "json"
	flags.StringVar(&l.Level, "log-level", l.Level, "least level to log: debug, info, warn or error")
	flags.StringVar(&l.Format, "log-format", l.Format, "json or text")
}

// Validate checks the flags.
func (l *Logging) Validate() error {
	if err := new(slog.Level).UnmarshalText([]byte(l.Level)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	if l.Format != "json" && l.Format != "text" {
		return fmt.Errorf("--log-format: %q is neither json nor text", l.Format)
	}
	return nil
}

// Start returns a logger that writes to out, and has the libraries use it too.
func (l *Logging) Start(out io.Writer) (logr.Logger, error) {
	logger, err := l.logger(out)
	if err == nil {
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)
	}
	return logger, err
}

func (l *Logging) logger(out io.Writer) (logr.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return logr.Discard(), err
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(out, options)), nil
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(out, options)), nil
}

// Metrics says where the metrics are served.
type Metrics struct {
	// Address is where to listen. "0" turns the metrics off.
	Address string
}

// AddFlags adds the flag --metrics-bind-address with its default.
func (m *Metrics) AddFlags(flags *pflag.FlagSet, address string) {
	flags.StringVar(&m.Address, "metrics-bind-address", address, `address for /metrics, served over TLS to clients that may get it; "0": none`)
}

// Server returns the manager's options for the metrics. They are served over TLS, to the
// clients that the API server allows to get /metrics.
func (m *Metrics) Server() server.Options {
	return server.Options{
		BindAddress:    m.Address,
		SecureServing:  true,
		FilterProvider: filters.WithAuthenticationAndAuthorization,
	}
}

// ValidateNames refuses what cannot be the name of a namespace, or of a cluster.
func ValidateNames(flag string, names ...string) error {
	var failures []error
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			failures = append(failures, fmt.Errorf("%s: %q: %s", flag, name, strings.Join(problems, ", ")))
		}
	}
	return errors.Join(failures...)
}

// CacheNamespaces restricts a cache to namespaces; without any, one request lists them all.
func CacheNamespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	namespaces := make(map[string]cache.Config, len(names))
	for _, name := range names {
		namespaces[name] = cache.Config{}
	}
	return namespaces
}
