package telemetry

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Two of the reasons of a request. Package apply has the others.
const (
	resyncReason = "resync"
	statusReason = "status"
)

// CountWrites returns a client of the hub that counts the Applications it writes.
func CountWrites(inner client.Client, count func(reason string)) client.Client {
	return counted{inner, count}
}

type counted struct {
	client.Client

	count func(reason string)
}

// Patch implements client.Client.
func (c counted) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.count(statusReason)
	return c.Client.Patch(ctx, object, patch, options...)
}

// NewLists makes a client for the lists of metadata of a resync, which counts them.
func NewLists(config *rest.Config, count func(reason string)) (metadata.Interface, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return promhttp.RoundTripperFunc(func(request *http.Request) (*http.Response, error) {
			count(resyncReason)
			return inner.RoundTrip(request)
		})
	})
	return metadata.NewForConfig(config)
}
