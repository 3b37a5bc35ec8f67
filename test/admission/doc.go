// Package admission tests the guarantees of admission on a real API server with the
// shipped manifests, two replicas of the webhook, and the agent. No user gains rights
// by it, and its outages, restarts and rotations harm only writes of Applications.
package admission
