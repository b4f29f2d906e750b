//go:build !unix

package metalbus

import (
	"errors"
	"os"
	"syscall"
)

func lockFile(*os.File) error { return errors.New("an installation can only be run on Unix") }

func apart() *syscall.SysProcAttr { return nil }
