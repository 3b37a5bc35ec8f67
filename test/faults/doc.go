// Package faults tests what becomes of Applications when things go wrong around
// their agent: it is killed, its calls fail or nobody hears of their success, its
// watches lose events, its API server refuses, forgets a kind, or deletes the
// namespace. The agent runs as a process behind a proxy (package proxy), on a real
// API server with the real webhook; no test looks into it. The tests have the
// names of the rows of the threat model.
//
//	go test -timeout 30m ./test/faults
//	go test -timeout 15m -run TestA41 -v ./test/faults # says how many trials there were
//
// A trial is the life of one Application in which one thing goes wrong, at a
// place that the test chooses: TestA41 has one for each numbered call and each
// mode of going wrong, TestA40 one for each event of a watch. None is left out.
// Trials go on in four lanes at once: all waiting, and no computing.
//
// What is looked at is never what the agent says of itself:
//
//   - The objects are as the spec says, with all that the manifest has, and those
//     that left it are gone (the state of the API server after each step).
//   - No object is left over when the Application is gone (the same).
//   - An object of somebody else that carries a copy of our marks is neither
//     changed nor deleted (its UID and resourceVersion).
//   - No object is created twice, and none is deleted that the spec has (the
//     calls that the proxy saw).
//   - Nothing is written about an Application that is gone (the same).
//
// A killed agent is started without a Lease: how long a Lease is waited for is
// another test's subject.
package faults
