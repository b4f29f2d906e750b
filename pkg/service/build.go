package service

import (
	"fmt"
	"runtime/debug"
)

// Build says what a program was built from.
type Build struct {
	// Version is the module's version, or "devel".
	Version string
	// Commit is the revision of the sources, "" if it is not known.
	Commit string
	// Go is the version of the compiler.
	Go string
}

// version is set by the linker: -X github.com/metalbus/metalbus/pkg/service.version=v1.2.3.
var version string

// ReadBuild is what this program was built from.
func ReadBuild() Build {
	b := Build{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (b Build) String() string {
	if b.Commit == "" {
		return fmt.Sprintf("%s (%s)", b.Version, b.Go)
	}
	return fmt.Sprintf("%s (commit %s, %s)", b.Version, b.Commit, b.Go)
}
