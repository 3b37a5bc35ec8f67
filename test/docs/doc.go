// Package docs reads the documentation, for tests that hold it to what it says: its
// commands are run, its manifests are accepted, its links lead somewhere.
//
// The commands of a page are in blocks that are indented, or fenced as sh or console.
// In a block with lines that begin with "$ " these are the commands, and the rest is
// what they print; in others each line is one, without what follows " #", and goes on in
// the next line behind a backslash or a pipe. What is indented and is no command has to
// be fenced as something else, as text.
package docs
