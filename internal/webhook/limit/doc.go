// Package limit bounds what senders cost the webhook. Any client that reaches its port can send reviews and
// open connections, and the API server must not wait behind them.
//
// [NewLanes] has a lane for each size of review: large ones do not exceed the memory of the Pod, and do not delay the
// usual ones. In each lane the senders take turns. With [Handshakes] they also take turns to connect, because the API
// server opens a connection for each concurrent review.
//
// The package knows senders only by their address. It does not know what a review says, nor who may send one.
package limit
