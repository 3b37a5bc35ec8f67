// Package oracle compares repairs with what kubectl apply would do. Webhook and agent are installed as
// users do it. Each object belongs to an Application of its own. Clients with random names change the
// objects at random: by updates, by all sorts of patches, and by deletion. When the agent has repaired an
// object,
//
//   - the manifest changes nothing, applied on the server's side, with force, as a dry run;
//   - the three-way patch that kubectl apply makes on the client's side changes nothing;
//   - only what the client had changed was written, in at most two writes;
//   - unobserved fields are as the client left them. Some Applications have a random observer schema;
//   - the status says so, and kubectl krake diff prints nothing.
//
// If the API server refuses a repair, it must refuse the apply as well, and the status must name each field
// that is not repaired. With a random observer schema, it is enough that it refuses that repair.
//
// Whole installations must also be at rest: after the creation of their Applications, the agent writes nothing.
// Then their objects drift once, and each is repaired.
//
// The manifests are those in testdata, and, if KRAKE_INSTALLS names a folder, the manifests in it.
// KRAKE_ORACLE_DRIFTS is the number of changes, and KRAKE_ORACLE_SEED repeats their choice.
// KRAKE_ORACLE_QUIET is how long installations must be at rest. Then one in KRAKE_ORACLE_SHARE of their objects drifts.
package oracle
