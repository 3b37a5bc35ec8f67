// Package checker judges what agents have done, from the audit log of the API server
// and what there is in the end, and from nothing else: no word of an agent's counts.
//
// The audit log has to have every write with the answer to it (level
// RequestResponse): what an object was before a write is what the former write of
// it has answered. [AuditPolicy] asks for that.
//
// There is a function for each invariant. What holds of each request and object that
// is looked at:
//
//   - I1: in the end the objects are as the Applications say, and nothing is written
//     then.
//   - I2: an object that says it belongs to an Application belongs to one that there
//     is, and that wants it.
//   - I3: an agent writes to no object that is not its Application's.
//   - I4: an agent deletes no object that the Application has wanted all along.
//   - I5: an agent creates an object once for each time that it is asked for.
//   - I6: an agent changes no field that no manifest has.
//   - I7: an agent writes no spec, and nobody but the agents what is theirs.
//   - I8: an agent tries nothing that it may not.
//   - I9: a troubled neighbour makes nobody wait twice as long.
//   - I10: what cannot be done is not tried all the time.
//   - I11: a status never goes back to a former spec, and is true in the end.
//   - I12: no secret value is in anything that an agent sends.
//   - I13: a ConfigMap that is no Application is none of our business.
package checker
