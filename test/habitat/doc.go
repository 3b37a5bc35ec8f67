// Package habitat tests Habitats as users have them: on a real control plane, with the
// shipped installation, and the shipped command `habitat` as processes with the
// token of their own ServiceAccount. The tests check the objects on the API server and
// its audit log, and not only the reports of the controllers.
//
//	go test -timeout 20m ./test/habitat
//	KRAKE_HABITAT_SAMPLES=folder go test -run TestSamples -v ./test/habitat
//
// No Pod runs. A stand-in for the kubelet marks each Pod as running and ready, and
// another one sets a unique address for each Pod of a Habitat. A Pod ends when it is
// deleted, or marked as failed.
//
// After all tests:
//
//   - no version of a ConfigMap, Habitat, Event or workload has a value of a Secret,
//     nor does a log (see witness);
//   - the Habitat controllers have written only their own objects, and no request of
//     theirs was refused (the audit log shows it).
package habitat
