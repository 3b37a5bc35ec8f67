package proxy

import "sync"

// Victim is a client that is killed at one of its numbered calls. The calls of several
// proxies, whose Intercept is [Victim.Meet], are counted together.
type Victim struct {
	// Kill ends the client. It must not block.
	Kill func()

	mu           sync.Mutex
	count, fatal int // of its calls since it was armed, and the one at which it is killed; 0 if at none
	sent         bool
	met          string
	killed       chan struct{}
}

// Arm has the client killed at one of its next calls: before it is sent on, or when it
// is carried out and the client does not hear of it. The channel is closed then.
func (v *Victim) Arm(call int, sent bool) (killed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count, v.fatal, v.sent, v.met, v.killed = 0, call, sent, "", make(chan struct{})
	return v.killed
}

// Disarm has the client live. If it has met the call already, Disarm waits for its
// death, and returns that call.
func (v *Victim) Disarm() (met string) {
	v.mu.Lock()
	v.fatal = 0 // of a call that was met, the fault is given already
	met, killed := v.met, v.killed
	v.mu.Unlock()
	if met != "" {
		<-killed
	}
	return met
}

// Met is the call at which the client is killed, empty until it is made.
func (v *Victim) Met() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.met
}

// Meet decides what befalls a call.
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
