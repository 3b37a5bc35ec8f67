package guard

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/internal/webhook/limit"
)

// path is where the API server posts its reviews.
const path = "/guard"

// New returns what serves the guard: it waits until there is a certificate that the target trusts. mgr keeps
// the certificates. namespace has the Service and the Secret of the guard on the target.
func New(mgr manager.Manager, target *rest.Config, registry prometheus.Registerer, namespace string, options Options, source Source) (serve manager.RunnableFunc, err error) {
	kept := pki.Defaults()
	kept.Name, kept.IsValidating, kept.Namespace = options.Name, true, namespace
	kept.Service, kept.Configuration, kept.Secret = options.Name, options.Name, options.secret()
	keeper, err := pki.Add(mgr, target, registry, kept, source.Now)
	if err != nil {
		return nil, err
	}
	host, port, err := options.listen()
	if err != nil {
		return nil, err
	}
	h := newHandler(source, options)
	if err := h.metrics.register(registry); err != nil {
		return nil, err
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){limit.NewHandshakes().Serve(keeper.GetCertificate)}})
	server.Register(path, bounded(limit.NewLanes(&admission.Webhook{Handler: h}, source.Now)))
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-keeper.Trusted():
		}
		h.serve(ctx, server.Start)
		return nil
	}, nil
}

// pause is the time between two attempts to serve.
const pause = 10 * time.Second

// serve serves until the context ends. A guard that cannot serve, as on a port that is taken, must not end the
// agent: without the guard, requests pass.
func (h *handler) serve(ctx context.Context, start func(context.Context) error) {
	for ctx.Err() == nil {
		h.metrics.serving.Set(1)
		err := start(ctx)
		h.metrics.serving.Set(0)
		if ctx.Err() != nil {
			return
		}
		h.Logger.Error(err, "the guard cannot serve: requests pass, and it is tried again", "after", pause.String())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// maxReview is the size of the largest review that is read: two objects, and what the API server adds.
const maxReview = 3 << 20

// bounded refuses larger reviews before they take memory: the API server then lets the request pass.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxReview {
			http.Error(w, "the review is too large for the guard", http.StatusRequestEntityTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}
