package preprov

import (
	"errors"

	"github.com/spf13/pflag"
)

// Config are the settings of PreprovisioningImages.
type Config struct {
	// Enabled has them kept, and waited for, at all.
	Enabled bool
	// ISO, Kernel and Initrd are where ramdisks lie that serve all hosts. With
	// none the images are somebody else's to build.
	ISO, Kernel, Initrd Place
}

// Bind adds the settings to the flags of a program, with their defaults. Each has
// the name of the environment variable that deployments set.
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&c.Enabled, "build-preprov-image", false, "keep a PreprovisioningImage for each host, and have the host boot that")
	c.ISO.bind(fs, "deploy-iso", "the ISO image with the ramdisk that PreprovisioningImages name")
	c.Kernel.bind(fs, "deploy-kernel", "the kernel of that ramdisk, where it is no ISO image")
	c.Initrd.bind(fs, "deploy-ramdisk", "that ramdisk, where it is no ISO image")
}

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	return errors.Join(c.ISO.validate("deploy-iso"), c.Kernel.validate("deploy-kernel"), c.Initrd.validate("deploy-ramdisk"))
}
