// Package watchjson decodes the events of a watch in part: the caller of [Decoder.Fields] sees the
// fields of an object as text and decodes only those that it reads.
//
//	d := watchjson.NewDecoder()
//	events := d.Watch(body, resource, func(text []byte) (runtime.Object, error) {
//		fields, err := d.Fields(text)
//		...
//	})
//
// It exists because most events change nothing that is observed, and building the object was most of
// their cost (ADR 035). The observer handles such an event of a Deployment in 81 us; decoding the whole
// object alone takes 117 (docs/load.md, BenchmarkEvent of pkg/observer).
//
// A value that the Decoder returns is the one that k8s.io/apimachinery/pkg/util/json returns. The
// Decoder checks that skipped parts are JSON. It does not read some texts, such as one with 1,000
// nested lists or a number beyond float64. Such a text is an error of Fields, Value and Metadata.
// [Decoder.Object] lets the library read it.
//
// The package knows the envelope of an event, bookmarks and errors. It does not know who watches,
// which fields matter, how a watch is opened, or what an Application is.
package watchjson
