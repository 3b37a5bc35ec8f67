package right

import (
	"sync"

	"github.com/go-logr/logr"
)

// standing is whether a process acts, which the keepers of both Leases decide.
type standing struct {
	changed func(Change)
	logger  logr.Logger
	acting  chan struct{} // closed when both Leases were had for the first time

	mu      sync.Mutex
	refused string // why the process must not act
	over    error  // why the right has ended

	reporting sync.Mutex
}

func newStanding(options Options) *standing {
	return &standing{changed: options.Changed, logger: options.Logger, acting: make(chan struct{})}
}

// act begins the right to act.
func (s *standing) act() {
	s.mu.Lock()
	s.refused = ""
	s.mu.Unlock()
	close(s.acting)
	s.logger.Info("acts from now on")
	s.report(Acting)
}

// refuse records why the right does not begin.
func (s *standing) refuse(why string) {
	if why == s.refusal() {
		return
	}
	s.mu.Lock()
	s.refused = why
	s.mu.Unlock()
	s.logger.Info("does not act", "reason", why)
	s.report(Refused)
}

func (s *standing) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// end ends the right, before anything else learns it.
func (s *standing) end(why error) {
	if why == nil {
		why = errEnded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = why
	}
}

func (s *standing) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// report passes a change on. The keepers of both Leases call it.
func (s *standing) report(c Change) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.changed(c)
}
