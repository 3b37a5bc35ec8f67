package proxy

import "sync"

// Victim is a client that is killed at one of its numbered calls. It counts the calls
// of all proxies whose Intercept is [Victim.Meet] together.
type Victim struct {
	// Kill ends the client. It must not block.
	Kill func()

	mu           sync.Mutex
	count, fatal int // calls since Arm, and the call at which the client is killed; 0 for none
	sent         bool
	met          string
	killed       chan struct{}
}

// Arm kills the client at one of its next calls: before the call is sent, or after it
// was carried out and before its answer. The channel is closed at that call.
func (v *Victim) Arm(call int, sent bool) (killed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count, v.fatal, v.sent, v.met, v.killed = 0, call, sent, "", make(chan struct{})
	return v.killed
}

// Disarm spares the client. If it has already met the call, Disarm waits for its death,
// and returns that call.
func (v *Victim) Disarm() (met string) {
	v.mu.Lock()
	v.fatal = 0 // a call already met has its fault
	met, killed := v.met, v.killed
	v.mu.Unlock()
	if met != "" {
		<-killed
	}
	return met
}

// Met returns the call at which the client was killed, or the empty string.
func (v *Victim) Met() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.met
}

// Meet decides the fault of a call.
func (v *Victim) Meet(call Call) *Fault {
	if call.Number == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.count++; v.count != v.fatal {
		return nil
	}
	v.met = call.String()
	killed := v.killed
	return &Fault{Sent: v.sent, Do: func() {
		v.Kill()
		close(killed)
	}}
}
