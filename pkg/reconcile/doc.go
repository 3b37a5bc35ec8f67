// Package reconcile is the loop: it brings the objects on the target cluster to what an
// Application says, and records what it did. One level-based loop serves creation, update,
// drift and deletion; its steps are those of the reference document: calculate (4), act (5),
// learn (6), record (7).
//
// [Reconciler.Reconcile] reads the stored Application and works on a copy. The phases of an
// Application that is to be here stand in Reconciler.phases, in their order; each is a small
// type in a file named by its verb. What the loop knows of one object in one pass is an
// object: it decides on values, and a writer acts on the decision.
//
// The desired state is computed here, by the functions that admission uses, from the user's
// spec and from what this agent learned. No stored document is an authority, and an object
// on the cluster is changed or deleted only if it proves to belong to the Application.
package reconcile
