package ui

import (
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/network"
)

// failures are the errors of a page, and what it has requested.
type failures struct {
	mu       sync.Mutex
	said     []string
	accepted string
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

// accept has the test pass with errors of this text, also with those that come after its end.
func (f *failures) accept(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = text
}

// unaccepted returns the errors without those that the test accepts.
func (f *failures) unaccepted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.said), func(text string) bool { return f.accepted != "" && strings.Contains(text, f.accepted) })
}

// forget leaves out the errors so far, which a test has expected.
func (f *failures) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = nil
}
