// Package observer watches objects for owners that want them in a desired state. It runs one
// informer for each kind of resource in use. An informer starts with the first owner and stops with
// the last one. With Options.Namespaces, it runs one informer for each kind and namespace in use.
// Rights in those namespaces then suffice, and a namespace without rights does not delay the
// others.
//
// An owner hands over [Target]s: an object, its fields, and their desired values. Every event is
// compared while the whole object is available. If nothing observed differs, only a small record of
// the object is stored. The owner is then notified only if the summary by Options.Summarise has
// changed. An object that differs is stored as a whole, and the owner is notified.
//
// An event passes through one file for each step. source lists and watches, and inspect compares
// objects with the targets, guarded against panics. events has the informer's handlers, and notify
// finds the owners that have to act. Among the other files, registry has the targets and last
// observations of owners. informers starts and stops an informer for each kind, and resync finds
// lost events.
//
// The life of an observer follows the table in the Krake documentation, Observers,
// "Actions on the API side":
//
//	current := observers.Observe(owner, targets)      // from here on, the owner's events wait
//	...                                               // the owner acts
//	observers.Start(owner, targets, seen)             // and flow again: none was lost
//	observers.Stop(owner)                             // before the owner's objects are deleted
//
// The owner passes the objects that it wrote to Start as seen. Its own writes then cause no
// notification, and an event that is older than the owner's last write is no drift.
//
// A kind that cannot be listed, and an object that makes its reader panic, are errors of their own
// targets ([Observation].Err). They do not delay others. The informer of a kind that is not served
// is stopped, and another is tried from time to time. [Observers.Resync] finds events that a watch
// has lost, and [Observers.ResyncNow] requests a comparison at once. [Observers.Strays] returns the
// objects that name an owner without being one of its targets.
//
// The package knows no Application: owners are names. It never writes.
package observer
