// Package cli has the commands of kubectl krake: how Applications are, what differs on
// their clusters and who has changed it, and what an operator does about that.
//
// They read and write as the user, with the flags and the words of kubectl. Nothing is
// computed otherwise than by webhook and agent: the same functions are called.
package cli
