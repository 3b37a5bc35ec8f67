// Package observer watches objects for owners that want them in a desired state: one
// informer for each kind of resource in use, started on the first need and
// stopped with the last owner. With Options.Namespaces there is one for each kind
// and namespace in use, so that rights in those namespaces suffice, and a namespace without
// rights delays no other.
//
// An owner hands over [Target]s: which object, which of its fields, and their
// desired values. Every event is compared while the whole object is at hand. If
// nothing observed differs, only a small record of the object is kept, and no owner is notified unless
// the summary that Options.Summarise returns for it changed. An object that differs is kept as a
// whole, and the owner is notified.
//
// An event goes this way, a file each: source (list and watch), decode (the parts that are read),
// inspect (the comparison with the targets, guarded against panics), events (the informer's
// handlers), notify (which owner has to act). Of the other files, registry has what owners observe
// and saw last, informers starts and stops an informer for each kind, and resync finds lost events.
//
// The life of an observer follows the table of the reference document:
//
//	current := observers.Observe(owner, targets)      // from here on, the owner's events wait
//	...                                               // the owner acts
//	observers.Start(owner, targets, seen)             // and flow again: none was lost
//	observers.Stop(owner)                             // before the owner's objects are deleted
//
// What the owner wrote itself is handed to Start as seen, so that its own echo
// causes no notification, and an event that is older than the owner's last write is no
// drift.
//
// A kind that cannot be listed, and an object that makes its reader panic, are
// errors of their own targets ([Observation].Err) and delay no others. The
// informer of a kind that is not served is stopped; another is tried from time to
// time. [Observers.Resync] finds what a watch has lost, and
// [Observers.ResyncNow] requests a comparison at once. [Observers.Strays] are
// the objects that name an owner and that no target of it names.
//
// The package knows no Application: owners are names. It never writes.
package observer
