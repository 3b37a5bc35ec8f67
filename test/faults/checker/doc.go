// Package checker judges what agents have done. It uses only the audit log of the API
// server and the final objects, and nothing that an agent reports.
//
// The audit log must have every write with its answer (level RequestResponse). The
// state of an object before a write is the answer to the previous write. [AuditPolicy]
// asks for that.
//
// Each invariant has a function. They judge each request and each object:
//
//   - I1: at the end, the objects are as the Applications say, and nothing more is
//     written.
//   - I2: an object that is marked as an Application's belongs to one that exists and
//     wants it.
//   - I3: an agent writes to no object that is not its Application's.
//   - I4: an agent deletes no object that the Application has wanted throughout.
//   - I5: an agent creates an object once for each time that it is asked for.
//   - I6: an agent changes no field that no manifest has.
//   - I7: an agent writes no spec, and only agents write their keys.
//   - I8: an agent tries nothing that it may not do.
//   - I9: beside a troubled Application, no repair takes twice as long.
//   - I10: what cannot be done is tried at a limited rate.
//   - I11: a status never returns to an earlier spec, and is true at the end.
//   - I12: nothing that an agent sends has a secret value.
//   - I13: neither agents nor the webhook act on a ConfigMap that is no Application.
package checker
