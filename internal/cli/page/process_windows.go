package page

import "syscall"

// ofItsOwn starts a process in a group of its own, which Ctrl-C in this console does not reach.
func ofItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
