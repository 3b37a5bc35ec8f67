package ui

import (
	"slices"
	"sync"

	"github.com/chromedp/cdproto/network"
)

// failures are the errors of a page, and what it has requested.
type failures struct {
	mu       sync.Mutex
	said     []string
	requests []*network.Request
}

func (f *failures) add(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, text)
}

func (f *failures) request(event *network.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, event)
}

func (f *failures) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.said)
}

func (f *failures) requested() []*network.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// forget leaves out the errors so far, which a test has expected.
func (f *failures) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = nil
}
