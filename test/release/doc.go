// Package release looks at what is said outside of the code: that the workflows of
// GitHub do what is here to be done, with no more rights than that takes, and that every
// overlay is told of. It runs no workflow; only GitHub does.
package release
