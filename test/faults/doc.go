// Package faults tests what becomes of Applications when things go wrong around
// their agent: it is killed, its calls fail or nobody hears of their success, its
// watches lose events, its API server refuses, forgets a kind, is killed, or deletes
// the namespace. The agent runs as a process behind a proxy (package proxy), on a real
// API server with the real webhook; no test looks into it. Those of the tests that
// are rows of the threat model have their names.
//
//	go test -timeout 30m ./test/faults
//	make faults # before a release: all points, half an hour of soak; it goes on where it was ended
//
// A tale is the life of one Application, a scenario, in which something goes wrong at a
// place that the test chooses: TestKilledAgentLeavesNothingOver has one for each call of the agent's about the
// Application and each mode of going wrong, TestLostEventsAreFoundByTheResync one for each event of a watch. With
// each commit some of the tales are told, before a release all of them. Tales go on in
// several lanes at once: all waiting, and little computing.
//
// What is judged is never what the agent says of itself: package checker goes by the
// audit log of the API server and what there is in the end, after every eight tales of
// a lane. Until then their Applications stay, and nothing may be written for them,
// however often their agent is killed and started for the sake of the others.
//
// What is left to chance comes from a seed that each run prints:
//
//	KRAKE_TEST_SEED=1 go test ./test/faults
//
// One point is tried again by its name, and all points that an expression matches:
//
//	KRAKE_FAULTS_ONLY='crash points, shrink: killed before, at call 7' go test -run TestKilledAgentLeavesNothingOver ./test/faults
//	KRAKE_FAULTS_ONLY='crash points' go test -run TestKilledAgentLeavesNothingOver ./test/faults
//
// That ends with the first violation. The bugs in test/mutants/faults.yaml show what the
// sweeps catch.
//
// A killed agent is started without a Lease: how long a Lease is waited for is
// another test's subject.
package faults
