// Package hub keeps the Applications of a cluster, which are ConfigMaps on the hub.
//
// [Store] reads and writes them for the loop, [Known] lists them for all else, and
// [IntentChanged] decides which of their events are news. [Folding] and the readings of the
// store keep them small and quick to read. [Resync] finds the changes that the watch has
// missed. Valid: a pass reads the status that it has written a moment before, though the
// cache has it not yet. Invalid: a write that rests on an older version is a conflict.
//
// The package does not know what an Application asks for, nor anything of the target.
package hub
