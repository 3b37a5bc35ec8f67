package target

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watching is a watch that goes on.
type watching struct {
	view

	kind   kind
	store  *store
	answer http.ResponseWriter
	// version is that of the last event that was looked at.
	version uint64
}

// told is an event as it is told.
type told struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// watch tells of what happens to the objects until its time is over or whoever
// asked has gone. Without a version that it begins at it tells of those first that
// there are.
func (s *Server) watch(answer http.ResponseWriter, request *http.Request, at key) error {
	asked, err := viewOf(request, at)
	if err != nil {
		return err
	}
	query := request.URL.Query()
	w := &watching{view: asked, kind: at.kind, store: s.store, answer: answer}
	if text := query.Get("resourceVersion"); text != "" {
		if w.version, err = strconv.ParseUint(text, 10, 64); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	ctx := request.Context()
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusOK)
	flush(answer)

	initially := query.Get("sendInitialEvents") == "true"
	if initially || w.version == 0 {
		err = w.begin(initially)
	}
	if err == nil {
		err = w.goOn(ctx)
	}
	if err != nil {
		_ = w.tell(watch.Error, statusOf(err)) // unless nobody listens any more
	}
	return nil
}

// begin tells of the objects that there are, and that these are all.
func (w *watching) begin(mark bool) error {
	objects, version := w.store.list(w.kind)
	for _, o := range objects {
		if !w.has(o) {
			continue
		}
		if err := w.show(watch.Added, o.text); err != nil {
			return err
		}
	}
	w.version = version
	if !mark {
		return nil
	}
	return w.tell(watch.Bookmark, metav1.PartialObjectMetadata{
		TypeMeta: w.kindOf(w.kind),
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.FormatUint(version, 10),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
}

// goOn tells of each event.
func (w *watching) goOn(ctx context.Context) error {
	for {
		events, changed, tooLate := w.store.since(w.kind, w.version)
		if tooLate {
			return apierrors.NewResourceExpired("too old resource version")
		}
		for _, e := range events {
			if err := w.event(e); err != nil {
				return err
			}
			w.version = e.version
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// event tells of an event what it is to whoever sees only what he asked for: an
// object that is selected no more is gone.
func (w *watching) event(e event) error {
	switch before, after := w.has(e.before), w.has(e.after); {
	case before && after:
		return w.show(watch.Modified, e.after.text)
	case after:
		return w.show(watch.Added, e.after.text)
	case before:
		text, err := e.before.in(e.version)
		if err != nil {
			return err
		}
		return w.show(watch.Deleted, text)
	}
	return nil
}

func (w *watching) show(what watch.EventType, text json.RawMessage) error {
	shown, err := w.view.show(text)
	if err != nil {
		return err
	}
	return w.tell(what, shown)
}

func (w *watching) tell(what watch.EventType, object any) error {
	err := json.NewEncoder(w.answer).Encode(told{what, object})
	flush(w.answer)
	return err
}

func flush(answer http.ResponseWriter) {
	if flusher, ok := answer.(http.Flusher); ok {
		flusher.Flush()
	}
}
