// Package journeys has complete user sessions with kubectl krake, with kubectl, webhook
// and agent as they are installed from manifests/overlays/default into a real cluster. A
// journey verifies what the documentation describes.
//
// Each .txtar file is a journey, in a namespace that is named after the file. Its user
// is edith, who has the ClusterRole edit there; the administrator uninstalls. Package
// test/kubectl/session has the commands in addition to those of testscript. After an intended
// change of a text, this updates the journeys, for the author to read in the diff:
//
//	go test ./test/journeys -update
package journeys
