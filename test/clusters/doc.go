// Package clusters tests many clusters with three control planes: a hub, which is
// a cluster of its own as well, and two others that are enrolled there as an
// administrator enrols them, by kubectl krake enrol and kubectl apply -k. The
// agents are processes with the tokens that enrolling gave them. What is looked at
// is never what an agent says of itself: the objects in each cluster, and the audit
// logs of the three API servers, which have one clock.
//
//	go test -timeout 10m ./test/clusters
//	KRAKE_E2E_LONG=1 go test -timeout 40m ./test/clusters // 50 moves; the hub is away for two minutes
//
// What holds, each in the test of its name:
//
//   - TestMoves (A35): an Application goes from cluster to cluster, and on to a
//     third and back before it has arrived, while agents are killed. Its objects
//     are never on no cluster, and in the end on exactly one.
//   - TestA8: the API server refuses an agent every write to another cluster's
//     Applications and, where each cluster has its namespace, every read.
//   - TestA9: what no hub may ask for is not done, whoever has the hub.
//   - TestA10: what a cluster says of its Applications harms no other one.
//   - TestA38: without its hub an agent goes on, and tells of it when the hub is
//     back; one that starts meanwhile does nothing.
//   - TestA36: an Application of a cluster that is lost can be given up.
//
// Each test has agents of its own, so that they run at once: all waiting, and
// little computing.
package clusters
