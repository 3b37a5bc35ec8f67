// Package release checks texts outside of the code. The workflows of GitHub run what
// this repository has, with the least rights, and the documentation lists every overlay.
// It runs no workflow; only GitHub does.
package release
