// Package limit bounds what senders cost the webhook. Anyone who reaches its port can
// send reviews and open connections, and the API server must not wait behind them.
//
// [NewLanes] has reviews of each size wait in a lane of their own, so that large ones
// take no more memory than the Pod has, and do not hold up the usual ones. In each lane
// the senders take turns, because one that sends a thousand reviews must hold up another
// by one place, and not by a thousand.
//
// [Handshakes] has those who connect take the same turns. The API server opens a
// connection for each review that it sends beside others, and a handshake takes
// milliseconds of a processor before anything is known of its sender.
//
// The package knows senders by their address alone. It does not know what a review says,
// nor who may send one.
package limit
