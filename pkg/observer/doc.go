// Package observer watches the objects that owners want to be as they are: one
// informer for each kind of resource in use, started on the first need and
// stopped with the last owner. With Options.Namespaces there is one for each kind
// and namespace in use, so that rights in those namespaces suffice, and one without
// rights holds up no other.
//
// An owner hands over [Target]s: which object, which of its fields, and their
// desired values. Every event is compared while the whole object is at hand. If
// nothing observed differs, the object is cut down to its projection and nobody
// hears of it, unless the summary that Options.Summarise gives of it changed;
// otherwise it is kept, and the owner is notified.
//
// The life of an observer follows the table of the reference document:
//
//	current := observers.Observe(owner, targets)      // from here on, the owner's events wait
//	...                                               // the owner acts
//	observers.Start(owner, targets, seen)             // and flow again: none was lost
//	observers.Stop(owner)                             // before the owner's objects are deleted
//
// What the owner wrote itself is handed to Start as seen, so that its own echo
// notifies nobody, and an event that is older than the owner's last write is no
// drift.
//
// A kind that cannot be listed, and an object that makes its reader panic, are
// errors of their own targets ([Observation].Err) and hold up nobody else. The
// informer of a kind that is not served is stopped; another is tried from time to
// time. [Observers.Resync] finds what a watch has lost, and
// [Observers.ResyncNow] has it look at once. [Observers.Strays] are
// the objects that say they are an owner's and that it does not name.
//
// The package knows no Application: owners are names. It never writes.
package observer
