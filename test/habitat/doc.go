// Package habitat tests Habitats as users have them: a real control plane, the
// shipped installation, and the shipped command `agent --habitat` as processes with
// the token of their own ServiceAccount. What is looked at is never what the
// controllers say of themselves alone: the objects on the API server, and its audit
// log.
//
//	go test -timeout 20m ./test/habitat
//	KRAKE_HABITAT_SAMPLES=folder go test -run TestSamples -v ./test/habitat
//
// No Pod runs. A stand-in for the kubelet declares each to run and to be ready, and
// another one, here, gives each Pod of a Habitat an address of its own. A Pod dies by
// being deleted, or by being declared to have failed.
//
// When all tests have run, whatever they were about:
//
//   - no value of a Secret is found in any version of a ConfigMap, Habitat, Event or
//     workload, nor in a log (see witness);
//   - what carries out Habitats has written nothing but what is its own to write, and
//     was refused nothing (the audit log says).
package habitat
