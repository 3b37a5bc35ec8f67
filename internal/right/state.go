package right

import (
	"sync"

	"github.com/go-logr/logr"
)

// state records whether a process acts. The keepers of both Leases decide it.
type state struct {
	logger  logr.Logger
	acting  chan struct{} // closed when this process first held both Leases
	changed func(Change)  // of Leadership.Run, whose keepers report

	mu      sync.Mutex
	refused string // why the process must not act
	over    error  // why the right has ended

	reporting sync.Mutex
}

func (s *state) act() {
	s.mu.Lock()
	s.refused = ""
	s.mu.Unlock()
	close(s.acting)
	s.logger.Info("acts from now on")
	s.report(Acting)
}

// refuse records why the right does not begin.
func (s *state) refuse(why string) {
	if why == s.refusal() {
		return
	}
	s.mu.Lock()
	s.refused = why
	s.mu.Unlock()
	s.logger.Info("does not act", "reason", why)
	s.report(Refused)
}

func (s *state) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// end ends the right before it reports that.
func (s *state) end(why error) {
	if why == nil {
		why = errEnded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = why
	}
}

func (s *state) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// report passes a change on. The keepers of both Leases call it.
func (s *state) report(c Change) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.changed(c)
}
