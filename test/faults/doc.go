// Package faults tests Applications while their agent meets faults. The agent is killed, its calls fail or are never
// answered, and its watches lose events. The API server refuses requests, or is killed. The agent runs as a process
// behind a proxy (package proxy), on a real API server with the real webhook. No test reads its memory.
//
//	go test -timeout 30m ./test/faults
//	make faults ROUNDS=20 # samples that are 20 times as large
//
// A tale is the life of one Application, a scenario, with a fault at a place that the test chooses.
// TestKilledAgentLeavesNothingOver has one for each of the agent's calls about the Application, and for each fault.
// TestLostEventsAreFoundByTheResync has one for each event of a watch. Each run plays a random sample of the tales.
// Several lanes play tales at once: they mostly wait, and compute little.
//
// No test trusts what the agent reports. Package checker judges the audit log of the API server and the final objects,
// after every eight tales of a lane. Until then their Applications stay. Nothing may be written for them, even if their
// agent is killed and started for other tales.
//
// All random choices come from a seed that each run prints:
//
//	KRAKE_TEST_SEED=1 go test ./test/faults
//
// Repeat one point by its name, or all points that an expression matches:
//
//	KRAKE_FAULTS_ONLY='crash points, shrink: killed before, at call 7' go test -run TestKilledAgentLeavesNothingOver ./test/faults
//	KRAKE_FAULTS_ONLY='crash points' go test -run TestKilledAgentLeavesNothingOver ./test/faults
//
// Such a run ends with the first violation.
//
// A killed agent starts again without a Lease: another test covers the wait for a Lease.
package faults
