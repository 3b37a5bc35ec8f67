package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Event is an event of a watch on its way to the client.
type Event struct {
	// Type is that of the watch: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR.
	Type            string
	Resource        string
	Namespace, Name string
	// URI is that of the watch, and Watch its number: they are counted as they
	// begin.
	URI   string
	Watch int
}

// String gives "MODIFIED services demo/web".
func (e Event) String() string {
	return fmt.Sprintf("%s %s %s/%s", e.Type, e.Resource, e.Namespace, e.Name)
}

// Verdict is what becomes of an event.
type Verdict int

// The verdicts.
const (
	// Pass hands the event on.
	Pass Verdict = iota
	// Drop loses it; the watch goes on.
	Drop
	// Twice hands it on, and then once more.
	Twice
	// Expire tells the client in its place that its resource version is too old
	// (410), and ends the watch.
	Expire
	// End ends the watch in its place.
	End
)

// frames are what the client gets in place of one, and whether the watch goes on.
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

// stream hands the events of a watch on, as the filter says, until either side
// ends it.
func (p *Proxy) stream(w http.ResponseWriter, call Call, from io.Reader) {
	flush := http.NewResponseController(w)
	if flush.Flush() != nil {
		return
	}
	number := p.begun()
	decoder := json.NewDecoder(from)
	for goesOn := true; goesOn; {
		var frame json.RawMessage
		if decoder.Decode(&frame) != nil {
			return // whoever ended it, there is nothing more to hand on
		}
		var instead [][]byte
		instead, goesOn = p.judge(call, number, frame).frames(frame)
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

// begun numbers a watch.
func (p *Proxy) begun() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches++
	return p.watches
}

// judge asks the filter, one event after the other.
func (p *Proxy) judge(call Call, number int, frame []byte) Verdict {
	var seen struct {
		Type   string `json:"type"`
		Object struct {
			Metadata struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"metadata"`
		} `json:"object"`
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter == nil || json.Unmarshal(frame, &seen) != nil {
		return Pass
	}
	return p.filter(Event{
		Type: seen.Type, Resource: call.Resource, URI: call.URI, Watch: number,
		Namespace: seen.Object.Metadata.Namespace, Name: seen.Object.Metadata.Name,
	})
}
