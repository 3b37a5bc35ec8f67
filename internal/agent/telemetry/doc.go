// Package telemetry reports what an agent does: in its log, in Events of Applications and
// objects, and in its metrics.
//
// [Reporter] takes the outcomes of the loop. [Metrics] counts them and the requests.
// [Gauges] reads the current state. [EventMeanings] returns all Events with their
// meaning. Valid: an Event "DriftReverted" that names spec.replicas. Invalid: one with the
// value of the field, which may be a secret.
//
// The package does not decide anything, and does not write the status of an Application.
package telemetry
