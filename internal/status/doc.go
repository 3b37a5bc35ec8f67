// Package status has the vocabulary of an agent's reports: the reasons, the conditions with these
// reasons, and the actions that become Events. It also writes the history of drifts, and decides
// which values are too private to publish.
//
// The table in reasons.go is the only list of reasons. Conditions, metrics, the plugin and the reference
// page read it.
package status
