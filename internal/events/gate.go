package events

import "sync"

// crowd is how many waiting Events let one more be written at the same time.
const crowd = 100

// gate lets one Event after the other be written, and more at the same time the more of them wait. The broadcaster
// has a goroutine for each Event, so that the hundreds of a rollout would delay all other requests to the API server.
type gate struct {
	mu               sync.Mutex
	left             sync.Cond
	running, waiting int
}

// enter waits, and returns a function to call after the write.
func (g *gate) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left.L == nil {
		g.left.L = &g.mu
	}
	g.waiting++
	for g.running > g.waiting/crowd {
		g.left.Wait()
	}
	g.waiting--
	g.running++
	return g.leave
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.left.Signal()
}
