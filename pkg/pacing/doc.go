// Package pacing decides when the loop may act again: it counts repairs against a rival, writes that
// failed, changes that the API server refused, holds that users asked for, and the writes of a status. Each
// type is a counter of its own. The time is an argument, and nothing here sleeps or writes.
package pacing
