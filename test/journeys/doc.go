// Package journeys has what people do with kubectl krake, from the beginning to the end,
// with kubectl, webhook and agent as they are installed from manifests/overlays/default
// into a real cluster. A journey holds what the documentation tells of.
//
// Each .txtar file is one, in a namespace of its own that is named after the file. Its
// user is edith, who has the ClusterRole edit there; whoever uninstalls is the
// administrator. The commands beside those of testscript are in test/session. After a
// text was changed on purpose, this writes what is said now into the journeys, for the
// author to read in the diff:
//
//	go test ./test/journeys -update
package journeys
