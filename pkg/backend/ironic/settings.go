package ironic

import (
	"context"
	"runtime"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Settings are what an installation has decided about its hosts.
type Settings struct {
	// Ramdisk is what hosts boot for inspection, cleaning and deployment, unless each
	// has an image of its own. What is empty is left to Ironic's own configuration. A
	// kernel alone is for images of hosts that come without one.
	Ramdisk RamdiskURLs
	// NoProvisioningNetwork: hosts that can boot from the network only are refused.
	NoProvisioningNetwork bool
	// ExternalURLv6 is what BMCs with an IPv6 address fetch images from, if not from
	// where others do.
	ExternalURLv6 string
	// LiveISOBootDevice and DiskBootDevice are Ironic's force_persistent_boot_device
	// for live images and for disk images: Default, Always or Never.
	LiveISOBootDevice string
	DiskBootDevice    string
	// SoftPowerOff is how long a system may take to shut down before its power is cut.
	SoftPowerOff time.Duration
	// RestAge is how old an answer may be about the power of a host at rest.
	RestAge time.Duration
	// Architecture is what hosts are taken to be until it is known.
	Architecture string
}

// RamdiskURLs are where a ramdisk lies.
type RamdiskURLs struct{ Kernel, Initrd, ISO string }

// DefaultSettings are the Settings that serve most.
func DefaultSettings() Settings {
	return Settings{
		LiveISOBootDevice: "Default", DiskBootDevice: "Default", SoftPowerOff: 3 * time.Minute, RestAge: 20 * time.Second, Architecture: ownArchitecture(),
	}
}

// ownArchitecture is the architecture of this machine in the words of Ironic.
func ownArchitecture() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	default:
		return runtime.GOARCH
	}
}

// Secrets reads Secrets.
type Secrets interface {
	// Get is the content of a Secret and its version. What is wrong with the Secret
	// itself, such as that it does not exist, is a *lifecycle.ProblemError; any other
	// error is trouble of ours.
	Get(ctx context.Context, namespace, name string) (data map[string][]byte, version string, err error)
}

// Inventories keep what is known of hosts' hardware.
type Inventories interface {
	// Hardware is what is known of a host's hardware, nil if that is nothing.
	Hardware(ctx context.Context, h lifecycle.Host) (*v1alpha1.HardwareDetails, error)
}

// Ramdisk is what a host boots for inspection, cleaning and deployment: an ISO
// image, or a kernel and an initrd with parameters of their own. The zero Ramdisk
// is Ironic's own.
type Ramdisk struct{ ISO, Kernel, Initrd, Params string }

// Beside is what the backend needs beside its Ironic. Only Secrets and Now must be
// there.
type Beside struct {
	Secrets Secrets
	Now     func() time.Time
	// Inventories give a node that is made anew the ports that it had.
	Inventories Inventories
}
