// Package status has the words by which an agent reports: the reasons and the conditions made of them,
// the actions that become Events, the history of drifts, and which values are too private to publish.
//
// The table in reasons.go is the only list of reasons. Conditions, metrics, the plugin and the reference
// page read it.
package status
