// Package forecast foretells what the loop would do about a request to change or delete an object. It makes
// the comparison of the loop with the object before and after the request:
//
//	undone := forecast.Undone(app, &object, before, after, setting)
//	// the differences that this request makes, and that the loop reverts
//
// Valid: a difference that was there before, a field that is not observed, and a held object are not
// undone. Invalid: a warning of a change that the loop leaves alone, or none of one that it reverts.
//
// The package knows the stored state of an Application only, which every replica of an agent has. The
// loop also remembers contention, which delays a repair and does not prevent it.
package forecast
