// Package enrol tests kubectl-krake on two real control planes, a hub and a
// cluster: what enrol gives is what an agent needs, and no more, and what remove
// takes is all of it.
package enrol
