// Package docs reads the documentation, for tests that verify it: commands run,
// manifests are accepted, and links lead to existing places.
//
// The commands of a page are in blocks that are indented, or fenced as sh or console. In
// a block with lines that begin with "$ ", these are the commands, and the other lines
// are their output. In other blocks each line is a command, without the text after " #".
// It continues in the next line after a backslash or a pipe. An indented block must have
// commands; fence other text, for example as text.
package docs
