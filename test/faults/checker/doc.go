// Package checker judges what agents have done. It uses only the audit log of the API
// server and the final objects, and nothing that an agent reports.
//
// The audit log must have every write with its answer (level RequestResponse). The
// state of an object before a write is the answer to the previous write. [AuditPolicy]
// asks for that.
//
// Each rule is a sentence, and has a function that judges each request and each object.
package checker
