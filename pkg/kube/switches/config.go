package switches

import (
	"errors"

	"github.com/spf13/pflag"
)

// Config are the settings of the switches' configuration.
type Config struct {
	// Enabled has it written at all.
	Enabled bool
	// ConfigSecret and KeySecret are the names of the Secrets that are filled,
	// in the namespace of the switches.
	ConfigSecret, KeySecret string
	// KeyFolder is where the backend finds the content of KeySecret.
	KeyFolder string
}

// Bind adds the settings to the flags of a program, with their defaults.
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&c.Enabled, "ironic-networking-enabled", false, "write BareMetalSwitches into the configuration of Ironic's networking service")
	fs.StringVar(&c.ConfigSecret, "ironic-switch-configs-secret", "", "`name` of the Secret that takes the list of switches")
	fs.StringVar(&c.KeySecret, "ironic-switch-credentials-secret", "", "`name` of the Secret that takes the switches' private keys")
	fs.StringVar(&c.KeyFolder, "ironic-switch-credentials-path", "", "`folder` in which Ironic's networking service finds the private keys")
}

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	if !c.Enabled {
		return nil
	}
	var errs []error
	for flag, value := range map[string]string{
		"ironic-switch-configs-secret": c.ConfigSecret, "ironic-switch-credentials-secret": c.KeySecret, "ironic-switch-credentials-path": c.KeyFolder,
	} {
		if value == "" {
			errs = append(errs, errors.New(flag+" is empty: ironic-networking-enabled needs it"))
		}
	}
	return errors.Join(errs...)
}
