// Package limit bounds what senders cost the webhook. Anyone who reaches its port can send reviews and open
// connections, and the API server must not wait behind them.
//
// [NewLanes] has reviews of each size wait in a lane of their own, so that large ones take no more memory than the Pod
// has, and do not delay the usual ones. In each lane the senders take turns. [Handshakes] has the senders that connect
// take turns too, because the API server opens a connection for each review that it sends beside others.
//
// The package knows senders only by their address. It does not know what a review says, nor who may send one.
package limit
