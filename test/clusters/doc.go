// Package clusters tests many clusters with three control planes: a hub, which is
// a cluster of its own as well, and two others that are enrolled there as an
// administrator enrols them, by kubectl krake enrol and kubectl apply -k. The
// agents are processes with the tokens that enrolling gave them. What is looked at
// is never what an agent says of itself: the objects in each cluster, and the audit
// logs of the three API servers, which have one clock.
//
// Each test has agents of its own, so that they run at once: all waiting, and
// little computing.
package clusters
