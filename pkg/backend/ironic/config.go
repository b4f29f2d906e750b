package ironic

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Config says which Ironics there are, and how they are used. One Ironic needs
// nothing but flags, or the environment variables that deployments of the operator
// that we follow have; several are listed in a file.
type Config struct {
	// File lists several Ironics; it takes the place of the settings of the one.
	File     string
	One      One
	Settings Settings
}

// One is how a single Ironic is reached.
type One struct {
	Endpoint string
	// AuthRoot is the directory whose folder "ironic" holds username and password.
	AuthRoot string
	CAFile   string
	CertFile string
	KeyFile  string
	Insecure bool
	Timeout  time.Duration
	// Discovery is how long what was found out about an Ironic is trusted.
	Discovery time.Duration
}

// Bind adds the settings to the flags of a program, with their defaults. Each has
// the name of the environment variable that deployments set.
func (c *Config) Bind(fs *pflag.FlagSet) {
	const mount = "/opt/metal3/"
	o := &c.One
	fs.StringVar(&c.File, "ironics-file", "", "YAML `file` that lists several Ironics; empty for the one of --ironic-endpoint")
	fs.StringVar(&o.Endpoint, "ironic-endpoint", "", "`URL` of the Ironic API, such as http://192.0.2.5:6385/v1/")
	fs.StringVar(&o.AuthRoot, "metal3-auth-root-dir", mount+"auth", "`directory` whose folder ironic holds the files username and password of the Ironic API; without it there is no authentication")
	fs.StringVar(&o.CAFile, "ironic-cacert-file", mount+"certs/ca/tls.crt", "`file` with the certificates that Ironic is checked against; if it does not exist, the system's")
	fs.StringVar(&o.CertFile, "ironic-client-cert-file", mount+"certs/client/tls.crt", "`file` with the certificate that Ironic is shown, if it exists")
	fs.StringVar(&o.KeyFile, "ironic-client-private-key-file", mount+"certs/client/tls.key", "`file` with the key of that certificate")
	fs.BoolVar(&o.Insecure, "ironic-insecure", false, "accept any certificate of Ironic")
	fs.DurationVar(&o.Timeout, "ironic-client-timeout", 0, "`time` that one request to Ironic may take; 0 for 30s")
	fs.DurationVar(&o.Discovery, "ironic-client-cache-ttl", 0, "`time` that the version of Ironic is trusted; 0 for 5m")
	c.Settings.bind(fs)
}

func (s *Settings) bind(fs *pflag.FlagSet) {
	d := DefaultSettings()
	*s = d
	fs.StringVar(&s.Ramdisk.Kernel, "deploy-kernel-url", "", "`URL` of the kernel of the ramdisk that hosts boot for inspection, cleaning and deployment")
	fs.StringVar(&s.Ramdisk.Initrd, "deploy-ramdisk-url", "", "`URL` of that ramdisk")
	fs.StringVar(&s.Ramdisk.ISO, "deploy-iso-url", "", "`URL` of the ISO image with that ramdisk, for hosts that boot by virtual media")
	fs.BoolVar(&s.NoProvisioningNetwork, "provisioning-network-disabled", false, "there is no network to boot hosts from: refuse those that can boot no other way")
	fs.StringVar(&s.ExternalURLv6, "ironic-external-url-v6", "", "`URL` that BMCs with an IPv6 address fetch images from")
	fs.StringVar(&s.LiveISOBootDevice, "live-iso-force-persistent-boot-device", d.LiveISOBootDevice, "whether live images are made the boot device for good: `Default`, Always or Never")
	fs.StringVar(&s.DiskBootDevice, "direct-deploy-force-persistent-boot-device", d.DiskBootDevice, "whether the disk is made the boot device for good: `Default`, Always or Never")
	fs.DurationVar(&s.SoftPowerOff, "soft-power-off-timeout", d.SoftPowerOff, "`time` that a system may take to shut down before its power is cut")
}

// listed is an Ironic in the file.
type listed struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	// AuthDir holds the files username and password.
	AuthDir  string `json:"authDir"`
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	Insecure bool   `json:"insecure"`
	// Selector chooses the hosts that are this Ironic's, if they name none
	// themselves: rack in (r1,r2),site=a.
	Selector string `json:"selector"`
	// Concurrency and Rate bound what it is asked: requests at once, and in a second.
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate"`
	Timeout     string  `json:"timeout"`
	// Ramdisk takes the place of the one in the flags.
	Ramdisk *struct {
		Kernel string `json:"kernel"`
		Initrd string `json:"initrd"`
		ISO    string `json:"iso"`
	} `json:"ramdisk"`
}

// chosen is an Ironic with the hosts that are its own.
type chosen struct {
	client   ironic.Config
	settings Settings
	selector labels.Selector
}

// Validate reports everything that is wrong, but for what stands in files.
func (c *Config) Validate() error {
	var errs []error
	if c.File == "" && c.One.Endpoint == "" {
		errs = append(errs, errors.New("ironic-endpoint: give the URL of the Ironic API (or list several Ironics in --ironics-file)"))
	}
	if c.File == "" && c.One.Endpoint != "" {
		errs = append(errs, c.one().client.Validate())
	}
	return errors.Join(append(errs, c.Settings.validate())...)
}

func (s Settings) validate() error {
	var errs []error
	r := s.Ramdisk
	if r.Kernel == "" && r.Initrd != "" {
		errs = append(errs, errors.New("deploy-ramdisk-url: give deploy-kernel-url too, it needs a kernel"))
	}
	for flag, value := range map[string]string{
		"live-iso-force-persistent-boot-device": s.LiveISOBootDevice, "direct-deploy-force-persistent-boot-device": s.DiskBootDevice,
	} {
		if !slices.Contains([]string{"Default", "Always", "Never"}, value) {
			errs = append(errs, fmt.Errorf("%s %q: want Default, Always or Never", flag, value))
		}
	}
	for flag, value := range map[string]string{
		"deploy-kernel-url": r.Kernel, "deploy-ramdisk-url": r.Initrd, "deploy-iso-url": r.ISO, "ironic-external-url-v6": s.ExternalURLv6,
	} {
		if u, err := url.Parse(value); value != "" && (err != nil || u.Scheme == "") {
			errs = append(errs, fmt.Errorf("%s: want a URL", flag))
		}
	}
	if s.SoftPowerOff < time.Second {
		errs = append(errs, fmt.Errorf("soft-power-off-timeout %s: want a second at least", s.SoftPowerOff))
	}
	return errors.Join(errs...)
}

// one is the single Ironic.
func (c *Config) one() chosen {
	o := c.One
	return chosen{settings: c.Settings, selector: labels.Nothing(), client: ironic.Config{
		Name: Name, Endpoint: o.Endpoint, Timeout: o.Timeout, Discovery: o.Discovery,
		Auth: ironic.Auth{Dir: filepath.Join(o.AuthRoot, "ironic")},
		TLS:  ironic.TLS{CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile, Insecure: o.Insecure},
	}}
}

// list are all Ironics, in order.
func (c *Config) list() ([]chosen, error) {
	if c.File == "" {
		return []chosen{c.one()}, nil
	}
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return nil, fmt.Errorf("ironics-file: %w", err)
	}
	var file struct {
		Ironics []listed `json:"ironics"`
	}
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		return nil, fmt.Errorf("ironics-file %s: %w", c.File, err)
	}
	if len(file.Ironics) == 0 {
		return nil, fmt.Errorf("ironics-file %s: list at least one Ironic under ironics", c.File)
	}
	var all []chosen
	var errs []error
	names := map[string]bool{}
	for i, l := range file.Ironics {
		one, err := l.chosen(c.Settings)
		if names[l.Name] {
			err = errors.Join(err, fmt.Errorf("the name %q is used twice", l.Name))
		}
		names[l.Name] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("ironics-file %s: ironics[%d]: %w", c.File, i, err))
		}
		all = append(all, one)
	}
	return all, errors.Join(errs...)
}

func (l listed) chosen(s Settings) (chosen, error) {
	var errs []error
	if l.Name == "" {
		errs = append(errs, errors.New("name: give it one"))
	}
	c := chosen{settings: s, selector: labels.Nothing(), client: ironic.Config{
		Name: l.Name, Endpoint: l.Endpoint, Auth: ironic.Auth{Dir: l.AuthDir}, Concurrency: l.Concurrency, Rate: l.Rate,
		TLS: ironic.TLS{CAFile: l.CAFile, CertFile: l.CertFile, KeyFile: l.KeyFile, Insecure: l.Insecure},
	}}
	var err error
	if l.Selector != "" {
		c.selector, err = labels.Parse(l.Selector)
		errs = append(errs, err)
	}
	if l.Timeout != "" {
		c.client.Timeout, err = time.ParseDuration(l.Timeout)
		errs = append(errs, err)
	}
	if r := l.Ramdisk; r != nil {
		c.settings.Ramdisk = RamdiskURLs{Kernel: r.Kernel, Initrd: r.Initrd, ISO: r.ISO}
	}
	return c, errors.Join(append(errs, c.settings.validate(), c.client.Validate())...)
}

// Open makes the backends, the first of which is for hosts that choose none. What it
// returns second lets go of them, and must be called.
func (c *Config) Open(beside Beside, reg prometheus.Registerer) ([]*Backend, func(), error) {
	all, err := c.list()
	if err != nil {
		return nil, nil, err
	}
	metrics := ironic.NewMetrics(reg)
	var list []*Backend
	closeAll := func() {
		for _, b := range list {
			b.client.Close()
		}
	}
	for _, one := range all {
		client, err := ironic.New(one.client, beside.Now, metrics)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		b, err := New(client, one.settings, beside)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		b.selector = one.selector
		list = append(list, b)
	}
	return list, closeAll, nil
}

// Claims reports whether a host that names no backend is this one's, by its labels.
func (b *Backend) Claims(h lifecycle.Host) bool {
	return b.selector != nil && b.selector.Matches(labels.Set(h.Intent.Labels))
}
