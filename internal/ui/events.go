package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stream sends server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return stream{w, http.NewResponseController(w)}
}

// send sends an event. A line of the data must not be empty for the browser, so each has its name.
func (s stream) send(event, number, data string) {
	var b strings.Builder
	fmt.Fprintf(&b, "event: %s\n", event)
	if number != "" {
		fmt.Fprintf(&b, "id: %s\n", number)
	}
	for line := range strings.SplitSeq(data, "\n") {
		fmt.Fprintf(&b, "data: %s\n", strings.ReplaceAll(line, "\r", " "))
	}
	b.WriteString("\n")
	_, _ = s.w.Write([]byte(b.String())) // a browser that has gone ends the context
}

func (s stream) flush() { _ = s.control.Flush() }

// begin answers at once, so that the browser knows that it is connected.
func (s stream) begin() {
	_, _ = s.w.Write([]byte(": \n\n"))
	s.flush()
}

// overviewEvents sends the rows and repairs after the number that the page has, and then each change.
func (s *Server) overviewEvents(w http.ResponseWriter, r *http.Request) {
	number, err := numberIn(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := newStream(w)
	out.begin()
	problem := ""
	for {
		found := s.live.since(number)
		for _, row := range found.rows {
			out.send("row", "", s.render("row", row))
		}
		for _, name := range found.gone {
			out.send("gone", "", rowID(name))
		}
		for _, repair := range found.repairs {
			out.send("repair", "", s.render("repair", repair))
		}
		if found.problem != problem || number != found.number {
			problem, number = found.problem, found.number
			out.send("problem", strconv.Itoa(number), problem)
			out.flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-found.next:
		}
	}
}

// applicationEvents sends an event after each change of an Application since the number that the page has.
func (s *Server) applicationEvents(w http.ResponseWriter, r *http.Request) {
	known, err := numberIn(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := newStream(w)
	out.begin()
	s.send(r.Context(), nameIn(r.URL.Query()), known, nil, out)
}

// numberIn returns the number of the last change that a page has.
func numberIn(r *http.Request) (int, error) {
	text := cmp.Or(r.Header.Get("Last-Event-Id"), r.URL.Query().Get("since"))
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("since: is no number")
	}
	return number, nil
}

// pause joins changes that follow each other: each is a reason to read everything anew.
const pause = 100 * time.Millisecond

// send sends an event after each change of an Application, until the context ends. What is further are
// problems with following an object, and an empty text after each change of it.
func (s *Server) send(ctx context.Context, name types.NamespacedName, known int, further <-chan string, out stream) {
	number, ofAll, next := s.live.of(name)
	ofObject, said := "", ""
	for {
		isNews := number != known
		known = number
		if isNews {
			out.send("changed", strconv.Itoa(known), "")
		}
		if problem := cmp.Or(ofAll, ofObject); problem != said {
			said = problem
			out.send("problem", strconv.Itoa(known), problem)
		}
		out.flush()
		if isNews {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
			number, ofAll, next = s.live.of(name)
		case ofObject = <-further:
			if ofObject == "" {
				out.send("changed", strconv.Itoa(known), "")
			}
		}
	}
}

// objectEvents sends an event after each change of an object, or of its Application.
func (s *Server) objectEvents(w http.ResponseWriter, r *http.Request) {
	ref, err := refIn(r.URL.Query())
	known, numberErr := numberIn(r)
	if err = cmp.Or(err, numberErr); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := newStream(w)
	out.begin()
	ctx := r.Context()
	news := make(latest, 1)
	version := r.URL.Query().Get("version")
	go s.repeat(ctx, func() error {
		from := version
		version = "" // a watch that has ended is followed by one that looks again
		return s.source.Watch(ctx, ref, from, func() { news.put("") })
	}, func(problem string) { news.put("changes of the object cannot be followed: " + problem) })
	s.send(ctx, ref.Application, known, news, out)
}

// latest has the last word of one writer. The words before are not needed: everything is read anew.
type latest chan string

func (l latest) put(word string) {
	select {
	case <-l:
	default:
	}
	l <- word
}
