// Package hub keeps the Applications of a cluster, which are ConfigMaps on the hub.
//
// [Store] reads and writes them for the loop, [ApplicationLister] lists them for other callers, and
// [IntentChanged] decides which of their events are news. [Resync] finds the changes that the
// watch has missed. Valid: a pass reads the status that it has just written, although the
// cache does not have it yet. Invalid: a write based on an older version, which conflicts.
//
// The package does not know what an Application asks for, or anything about the target.
package hub
