// Package clusters tests several clusters with three control planes. One is the hub,
// which is also a cluster. An administrator enrols the two others there, with kubectl
// krake enrol and kubectl apply -k: the enrolment grants exactly what an agent needs,
// and its removal removes all of it. The agents are processes with the tokens of their
// enrolment. The tests check the objects in each cluster, and not only the agents'
// reports. They also read the audit logs of the three API servers, which share one
// clock.
//
// Most tests have their own agents, so that they run in parallel: they mostly wait, and
// compute little.
package clusters
