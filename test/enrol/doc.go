// Package enrol tests kubectl-krake on two real control planes, a hub and a cluster.
// enrol grants exactly what an agent needs, and remove removes all of it.
package enrol
