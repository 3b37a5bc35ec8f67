package agent

import (
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// quiet is a log without the errors that the status of an Application states: the controller would
// log them at each try, and they are logged once when they begin and once when they end.
type quiet struct{ logr.LogSink }

// Error implements logr.LogSink.
func (q quiet) Error(err error, message string, pairs ...any) {
	if !reconcile.IsStated(err) {
		q.LogSink.Error(err, message, pairs...)
	}
}

// WithValues implements logr.LogSink.
func (q quiet) WithValues(pairs ...any) logr.LogSink { return quiet{q.LogSink.WithValues(pairs...)} }

// WithName implements logr.LogSink.
func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name)} }

// logOf returns the log of the controller, about one Application or in general.
func logOf(logger logr.Logger) func(*ctrl.Request) logr.Logger {
	return func(request *ctrl.Request) logr.Logger {
		own := logger
		if sink := logger.GetSink(); sink != nil {
			own = own.WithSink(quiet{sink})
		}
		if request != nil {
			own = own.WithValues("application", request.NamespacedName.String())
		}
		return own
	}
}
