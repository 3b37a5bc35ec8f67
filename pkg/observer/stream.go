package observer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Streams gives the bytes of watches, see [Options].
type Streams func(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (io.ReadCloser, error)

// NewStreams opens watches as the dynamic client does.
func NewStreams(config *rest.Config) (Streams, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.AcceptContentTypes, config.ContentType = nil, runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	server, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (io.ReadCloser, error) {
		options.Watch = true
		return server.Get().AbsPath(pathOf(resource, namespace)...).
			SpecificallyVersionedParams(&options, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"}).Stream(ctx)
	}, nil
}

func pathOf(resource schema.GroupVersionResource, namespace string) []string {
	path := []string{"api", resource.Version}
	if resource.Group != "" {
		path = []string{"apis", resource.Group, resource.Version}
	}
	if namespace != metav1.NamespaceAll {
		path = append(path, "namespaces", namespace)
	}
	return append(path, resource.Resource)
}

// newInformer makes an informer whose watch becomes records as it is read. What is
// listed, because the server streams no lists, is looked at by the transform.
func (o *Observers) newInformer(s scope) cache.SharedIndexInformer {
	objects := o.Client.Resource(s.resource).Namespace(s.namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = o.Selector
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = o.Selector
			if o.Streams == nil {
				return objects.Watch(ctx, options)
			}
			return o.watch(ctx, s, options)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, o.Client), nil, // objects are records, or not looked at yet
		cache.SharedIndexInformerOptions{Indexers: cache.Indexers{byOwner: indexByOwner}, ObjectDescription: s.resource.String()},
	)
}

func (o *Observers) watch(ctx context.Context, s scope, options metav1.ListOptions) (watch.Interface, error) {
	body, err := o.Streams(ctx, s.resource, s.namespace, options)
	switch {
	case net.IsProbableEOF(err) || net.IsTimeout(err):
		return watch.NewEmptyWatch(), nil // it is tried again without a list, as client-go does
	case err != nil:
		return nil, err
	}
	events := &stream{
		body: body, events: make(chan watch.Event), stopped: make(chan struct{}),
		frames: frames{from: body}, decoder: decoder{words: newWords(), observers: o, resource: s.resource},
	}
	go events.run()
	return events, nil
}

// stream is a watch that is read.
type stream struct {
	frames  frames
	decoder decoder
	body    io.Closer
	events  chan watch.Event

	once    sync.Once
	stopped chan struct{}
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.once.Do(func() {
		close(s.stopped)
		_ = s.body.Close() // whoever reads has an error, and ends
	})
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

// run reads until the server ends the watch, which it does now and then, or until
// the connection breaks: what comes next is asked for by whoever watches.
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
			event, err = s.decoder.event(text)
		}
		if err != nil {
			event = watch.Event{Type: watch.Error, Object: unread(err)}
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

// unread is how client-go tells of an event that cannot be decoded.
func unread(err error) *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("unable to decode an event from the watch stream: %v", err),
	}
}

const (
	// leastBuffer is what is kept between events, mostFrame what one may have.
	leastBuffer = 32 << 10
	mostFrame   = 64 << 20
)

// errFrame is the error of bytes that are no JSON object.
var errFrame = errors.New("the event is no JSON object, or too large")

// frames cuts what a server sends into JSON objects. It counts braces, and looks at
// nothing else.
type frames struct {
	from   io.Reader
	buffer []byte
	// used are the bytes that were given.
	used int
}

// next gives the next object, which is good until next is called again.
func (f *frames) next() ([]byte, error) {
	f.drop()
	var c cutter
	for {
		if end, err := c.cut(f.buffer); end > 0 || err != nil {
			f.used = end
			return f.buffer[:end], err
		}
		if len(f.buffer) >= mostFrame {
			return nil, errFrame
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
}

// drop forgets what was given, and room that was needed for it alone.
func (f *frames) drop() {
	rest := f.buffer[f.used:]
	if cap(f.buffer) > 2*leastBuffer && len(rest) < leastBuffer {
		f.buffer = make([]byte, 0, leastBuffer)
	}
	f.buffer, f.used = append(f.buffer[:0], rest...), 0
}

func (f *frames) fill() error {
	if len(f.buffer) == cap(f.buffer) {
		grown := make([]byte, len(f.buffer), max(leastBuffer, 2*cap(f.buffer)))
		copy(grown, f.buffer)
		f.buffer = grown
	}
	n, err := f.from.Read(f.buffer[len(f.buffer):cap(f.buffer)])
	f.buffer = f.buffer[:len(f.buffer)+n]
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// cutter finds the end of an object, in as many pieces as it comes.
type cutter struct {
	at, depth       int
	quoted, escaped bool
}

// cut gives the end of the first object, 0 if it is not there yet.
func (c *cutter) cut(text []byte) (end int, err error) {
	for ; c.at < len(text); c.at++ {
		b := text[c.at]
		switch {
		case c.quoted:
			c.quote(b)
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			c.depth++
		case b == '}' || b == ']':
			c.depth--
		}
		if c.depth <= 0 && b > ' ' {
			if b != '}' || c.depth < 0 {
				return 0, errFrame
			}
			return c.at + 1, nil
		}
	}
	return 0, nil
}

func (c *cutter) quote(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case b == '\\':
		c.escaped = true
	case b == '"':
		c.quoted = false
	}
}
