package watchjson

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json" // reads integers as such
	"k8s.io/apimachinery/pkg/watch"
)

// Watch reads the events of a watch from its body until the server ends the watch, the connection
// breaks, or an event cannot be decoded; the last is an event of type Error. object decodes an
// object that was added, modified or deleted; it must not keep the text. The watch uses the
// Decoder until its result channel is closed. of is what is watched, for errors.
func (d *Decoder) Watch(body io.ReadCloser, of fmt.Stringer, object func(text []byte) (runtime.Object, error)) watch.Interface {
	s := &stream{
		frames: frames{from: body}, decoder: d, of: of, object: object,
		body: body, events: make(chan watch.Event), stopped: make(chan struct{}),
	}
	go s.run()
	return s
}

// stream implements watch.Interface.
type stream struct {
	frames  frames
	decoder *Decoder
	of      fmt.Stringer
	object  func(text []byte) (runtime.Object, error)
	body    io.Closer
	events  chan watch.Event

	once    sync.Once
	stopped chan struct{}
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.once.Do(func() {
		close(s.stopped)
		_ = s.body.Close() // run, which may be reading, gets an error and returns
	})
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

func (s *stream) run() {
	defer close(s.events)
	defer s.Stop()
	for {
		text, err := s.frames.next()
		if err != nil && !errors.Is(err, errFrame) {
			return
		}
		var event watch.Event
		if err == nil {
			event, err = s.event(text)
		}
		if err != nil {
			event = watch.Event{Type: watch.Error, Object: undecoded(err)}
		}
		select {
		case s.events <- event:
		case <-s.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// undecoded returns the status that client-go reports for an event that cannot be decoded.
func undecoded(err error) *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("unable to decode an event from the watch stream: %v", err),
	}
}

// event decodes an event, which shares nothing with the text.
func (s *stream) event(text []byte) (watch.Event, error) {
	e, err := s.decoder.envelope(text)
	if err != nil {
		return watch.Event{}, fmt.Errorf("decode an event of %s: %w", s.of, err)
	}
	object, err := s.objectOf(e)
	if err != nil {
		return watch.Event{}, fmt.Errorf("decode an event %q of %s: %w", e.Type, s.of, err)
	}
	return watch.Event{Type: e.Type, Object: object}, nil
}

// envelope is an event whose object is not decoded.
type envelope struct {
	Type   watch.EventType    `json:"type"`
	Object stdjson.RawMessage `json:"object"`
}

func (d *Decoder) envelope(text []byte) (e envelope, err error) {
	fields, err := d.Fields(text)
	if err != nil {
		return e, json.Unmarshal(text, &e)
	}
	for _, field := range fields {
		switch field.Name {
		case "type":
			if err := stdjson.Unmarshal(field.Text, &e.Type); err != nil {
				return e, err
			}
		case "object":
			e.Object = field.Text
		}
	}
	return e, nil
}

func (s *stream) objectOf(e envelope) (runtime.Object, error) {
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		return s.object(e.Object)
	case watch.Bookmark:
		bookmark := &metav1.PartialObjectMetadata{}
		return bookmark, stdjson.Unmarshal(e.Object, bookmark)
	case watch.Error:
		status := &metav1.Status{}
		return status, stdjson.Unmarshal(e.Object, status)
	}
	return nil, errUnread
}
