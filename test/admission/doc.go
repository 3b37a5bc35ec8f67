// Package admission tests the guarantees of admission on a real API server with the
// shipped manifests, two replicas of the webhook, and the agent. No user gains rights
// by it, and its outages, restarts and rotations harm only writes of Applications. A
// test that is named after a row of the threat model, such as
// TestClusterLivesWhileTheWebhookIsDown, proves that row.
package admission
