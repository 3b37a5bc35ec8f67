package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Event is an event of a watch on its way to the client.
type Event struct {
	// Name is that of the object, and URI that of the watch.
	Name, URI string
}

// Verdict decides what happens to an event.
type Verdict int

const (
	// Pass forwards the event.
	Pass Verdict = iota
	// Drop loses the event; the watch continues.
	Drop
	// Twice forwards the event twice.
	Twice
	// Expire replaces the event with the error that the resource version is too old
	// (410), and ends the watch.
	Expire
	// End ends the watch without the event.
	End
)

// frames returns what the client receives in place of an event, and whether the watch
// continues.
func (v Verdict) frames(frame []byte) (instead [][]byte, goesOn bool) {
	switch v {
	case Drop:
		return nil, true
	case Twice:
		return [][]byte{frame, frame}, true
	case Expire:
		expired := fmt.Appendf(nil, `{"type": "ERROR", "object": %s}`, statusOf(http.StatusGone))
		return [][]byte{expired}, false
	case End:
		return nil, false
	}
	return [][]byte{frame}, true
}

// stream forwards the events of a watch through the filter, until either side ends it.
func (p *Proxy) stream(w http.ResponseWriter, call Call, from io.Reader) {
	flush := http.NewResponseController(w)
	if flush.Flush() != nil {
		return
	}
	decoder := json.NewDecoder(from)
	for goesOn := true; goesOn; {
		var frame json.RawMessage
		if decoder.Decode(&frame) != nil {
			return // a side has ended the watch
		}
		var instead [][]byte
		instead, goesOn = p.judge(call, frame).frames(frame)
		for _, part := range instead {
			if _, err := w.Write(append(part, '\n')); err != nil { //nolint:gosec // the client is no browser
				return
			}
		}
		if flush.Flush() != nil {
			return
		}
	}
}

// judge passes the events to the filter, one at a time.
func (p *Proxy) judge(call Call, frame []byte) Verdict {
	var seen struct {
		Object struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"object"`
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter == nil || json.Unmarshal(frame, &seen) != nil {
		return Pass
	}
	return p.filter(Event{Name: seen.Object.Metadata.Name, URI: call.URI})
}
