// Package agent wires the agent of one cluster: it reads the flags, connects hub and target,
// and puts the loop between the store of Applications and the observers.
//
// It talks to two API servers. The hub has the Applications; the target has their objects,
// and is where the agent runs. They may be one.
//
// The work is in other packages: right decides whether the agent may act, and discovery finds
// kinds. The subpackages (hub, target, connection, sources, telemetry) are both ends of the
// loop. This package knows their options, and what one needs of another.
package agent
