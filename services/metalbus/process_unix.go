//go:build unix

package metalbus

import (
	"os"
	"syscall"
)

// lockFile takes a lock that the kernel drops when the process ends, however
// that happens.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// apart keeps a terminal's Ctrl-C from a child, which has to live on until
// those who use it have stopped.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
