//go:build !unix

package metalbus

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func lockFile(*os.File) error {
	return fmt.Errorf("run an installation on this system: %w", errors.ErrUnsupported)
}

func apart() *syscall.SysProcAttr { return nil }
