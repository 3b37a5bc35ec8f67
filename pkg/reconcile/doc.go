// Package reconcile is the loop: it makes the objects on the target cluster match an Application,
// and records the result. One level-based loop serves creation, update, drift and deletion. Its
// steps are those of the Krake documentation, Application controller, "Reconciliation loop":
// calculate (4), act (5), learn (6), record (7).
//
// [Reconciler.Reconcile] reads the stored Application and works on a copy. Reconciler.phases lists
// the phases of an Application that belongs to this cluster. Each phase is a small type in a file
// with the same name. An object holds the state of one object during one pass: it decides on
// values, and a writer acts on the decision.
//
// The package computes the desired state from the user's spec and from values that this agent
// learned, with the same functions as admission. No stored document is an authority. The loop
// changes or deletes an object on the cluster only if it proves to belong to the Application.
package reconcile
