//go:build unix

package page

import "syscall"

// ofItsOwn starts a process in a session of its own, which the signals of this terminal do not reach.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
