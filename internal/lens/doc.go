// Package lens shows one live object as its Application sees it: which fields are observed, how they
// differ, which values were learned, and who set them. It also makes the observer schema that results
// when fields are added or removed.
//
//	lens.Compare(app, expected, live, false) // the observed fields, for kubectl krake blame
//	lens.Lines(app, expected, live, false)   // each line of the object, for kubectl krake ui
//	lens.Edit(document, resource, toggles)   // another observer schema
//
// Values that may be secrets are hidden: see [Redactor]. The package knows no cluster.
package lens
