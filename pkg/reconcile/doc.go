// Package reconcile is the loop: it brings what is on the target cluster to what
// an Application says, and records what it did. One level-based loop serves
// creation, update, drift and deletion; its steps are those of the reference
// document: calculate (4), act (5), learn (6), record (7).
//
// The desired state is computed here, by the functions that admission uses, from
// the user's spec and from what this agent learned. No stored document is an
// authority, and an object on the cluster is changed or deleted only if it
// proves to belong to the Application.
package reconcile
