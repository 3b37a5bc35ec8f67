// Package pacing decides when the loop may act again. It counts repairs against a competing writer, failed
// writes, refused changes, users' holds, and the writes of a status. Each type is a separate
// counter. The time is an argument, and nothing here sleeps or writes.
package pacing
