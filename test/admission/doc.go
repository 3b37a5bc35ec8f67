// Package admission tests what admission is trusted with, on a real API server
// with the shipped manifests, two replicas of the webhook and the agent: that
// nobody gains by it, and that its outages, restarts and rotations harm nothing
// that is not an Application. A test that is named after a row of the threat
// model, such as TestClusterLivesWhileTheWebhookIsDown, proves that row.
package admission
