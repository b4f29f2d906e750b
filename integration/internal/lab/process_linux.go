package lab

import "syscall"

// dieWithParent ends a process with the tests however these end: go test kills
// a test that hangs, and no clean-up runs then.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
