// Package guard tests the guard on a real API server: what people see, that nothing of the system is ever
// refused, and what happens while the guard is down or hangs.
package guard
