// Package oracle compares repairs with what kubectl apply would do. It changes objects on a real API
// server at random, repairs them with the plan and the patches of the agent, and applies the manifest on
// the server's side, with force, as a dry run. That must change nothing.
//
// The manifests are those in testdata, and, if KRAKE_INSTALLS names a folder, the manifests in it.
// KRAKE_ORACLE_DRIFTS is the number of changes, and KRAKE_ORACLE_SEED repeats a run.
package oracle
