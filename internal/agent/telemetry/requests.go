package telemetry

import (
	"context"
	"net/http"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reasons are why the API servers are asked: the values of the label of
// krake_api_requests_total.
func reasons() []string {
	return []string{"create", "repair", "delete", "read", resyncReason, statusReason}
}

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
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return countedTransport{inner, count, resyncReason} })
	return metadata.NewForConfig(config)
}

// countedTransport counts the requests that are sent, for one reason.
type countedTransport struct {
	http.RoundTripper

	count  func(reason string)
	reason string
}

// RoundTrip implements http.RoundTripper.
func (c countedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count(c.reason)
	return c.RoundTripper.RoundTrip(request)
}
