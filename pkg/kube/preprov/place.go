package preprov

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Place says where a file lies, by the architecture that it is for. What is said
// of one architecture goes before the list, and that before what is for all.
type Place struct {
	All            string
	X86, ARM       string
	ByArchitecture string
}

// The architectures that have a setting of their own.
const (
	x86 = "x86_64"
	arm = "aarch64"
)

func (p *Place) bind(fs *pflag.FlagSet, name, what string) {
	fs.StringVar(&p.All, name+"-url", "", "`URL` of "+what)
	fs.StringVar(&p.X86, name+"-url-x86-64", "", "`URL` of the same for x86_64")
	fs.StringVar(&p.ARM, name+"-url-aarch64", "", "`URL` of the same for aarch64")
	fs.StringVar(&p.ByArchitecture, name+"-by-arch", "", "the same for several architectures, as `ARCHITECTURE:URL` separated by commas")
}

func (p *Place) validate(name string) error {
	var errs []error
	for flag, value := range map[string]string{name + "-url": p.All, name + "-url-x86-64": p.X86, name + "-url-aarch64": p.ARM} {
		if value != "" && !isURL(value) {
			errs = append(errs, fmt.Errorf("%s: want a URL without a login, such as http://192.0.2.80/ramdisk", flag))
		}
	}
	for _, item := range p.items() {
		if arch, value, _ := strings.Cut(item, ":"); strings.TrimSpace(arch) == "" || !isURL(strings.TrimSpace(value)) {
			errs = append(errs, errors.New(name+"-by-arch: want ARCHITECTURE:URL, without logins and separated by commas, such as x86_64:http://192.0.2.80/ramdisk"))
			break
		}
	}
	return errors.Join(errs...)
}

// isURL reports whether it is a URL that everybody may see.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.User == nil
}

func (p *Place) items() []string {
	return slices.DeleteFunc(strings.Split(p.ByArchitecture, ","), func(s string) bool { return strings.TrimSpace(s) == "" })
}

// of is where the file for an architecture lies, "" if there is none.
func (p *Place) of(arch string) string {
	arch = strings.ToLower(arch)
	if own := map[string]string{x86: p.X86, arm: p.ARM}[arch]; own != "" {
		return own
	}
	for _, item := range p.items() {
		if a, where, _ := strings.Cut(item, ":"); strings.EqualFold(strings.TrimSpace(a), arch) {
			return strings.TrimSpace(where)
		}
	}
	return p.All
}

// architectures are those that anything is said of; "" is all others.
func (p *Place) architectures() []string {
	list := []string{"", x86, arm}
	for _, item := range p.items() {
		arch, _, _ := strings.Cut(item, ":")
		list = append(list, strings.TrimSpace(arch))
	}
	return list
}

// ready reports whether there is a ramdisk of that format for an architecture.
func (c *Config) ready(arch string, f v1alpha1.ImageFormat) bool {
	switch f {
	case v1alpha1.ImageFormatISO:
		return c.ISO.of(arch) != ""
	case v1alpha1.ImageFormatInitRD:
		return c.Initrd.of(arch) != "" && c.Kernel.of(arch) != ""
	default:
		return false
	}
}

// serves reports whether there is any ramdisk for an architecture.
func (c *Config) serves(arch string) bool {
	return c.ready(arch, v1alpha1.ImageFormatISO) || c.ready(arch, v1alpha1.ImageFormatInitRD)
}

// builds reports whether there is any ramdisk at all, so that nobody else has to
// build one.
func (c *Config) builds() bool {
	return c.Enabled && slices.ContainsFunc(slices.Concat(c.ISO.architectures(), c.Kernel.architectures(), c.Initrd.architectures()), c.serves)
}
