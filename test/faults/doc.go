// Package faults tests what becomes of Applications when things go wrong around
// their agent.
package faults
