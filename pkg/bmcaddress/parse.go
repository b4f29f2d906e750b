package bmcaddress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// ErrMissing is an address that was left empty.
var ErrMissing = errors.New("missing BMC address")

// schemeIPMI is the type of an address that names none.
const schemeIPMI = "ipmi"

// Parse takes an address apart. skipVerify is the user's
// disableCertificateVerification. A login in the address is ignored and never
// appears in an error.
func Parse(address string, skipVerify bool) (Address, error) {
	if address == "" {
		return Address{}, ErrMissing
	}
	u, err := parseURL(address)
	if err != nil {
		return Address{}, parseError(address, err)
	}
	if err := checkHost(u); err != nil {
		return Address{}, err
	}
	a := Address{
		Type:       u.Scheme,
		Host:       u.Hostname(),
		Port:       u.Port(),
		Path:       u.EscapedPath(),
		RawQuery:   u.RawQuery,
		SkipVerify: skipVerify,
	}
	if _, known := familyOf(a.Type); !known {
		return Address{}, unknownType(a.Type, address)
	}
	if err := checkSystem(a); err != nil {
		return Address{}, err
	}
	return a, nil
}

// parseURL reads the forms in which people write addresses: a URL, host:port, a
// bare host, and a URL without its slashes.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return parseHostPort(address, err)
	case u.Opaque != "":
		return url.Parse(strings.Replace(address, ":", "://", 1))
	case u.Scheme == "" && u.Host == "":
		return url.Parse(schemeIPMI + "://" + address)
	default:
		return u, nil
	}
}

// parseHostPort reads what is no URL as host:port; if it isn't that either,
// urlErr says why it is no URL.
func parseHostPort(address string, urlErr error) (*url.URL, error) {
	if strings.Contains(address, "//") || strings.Contains(address, "@") {
		return nil, urlErr
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, urlErr
	}
	return &url.URL{Scheme: schemeIPMI, Host: address}, nil
}

// checkHost takes no host, an IP address, or a DNS name.
func checkHost(u *url.URL) error {
	host := u.Hostname()
	if host == "" {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && isZone(addr.Zone()) {
		return nil
	}
	if isDNSName(host) {
		return nil
	}
	return fmt.Errorf("failed to parse BMC address information: BMC address hostname/IP : [%s] is invalid%s",
		host, bracketHint(u.Host, u.Scheme))
}

// maxLabel is the greatest length of a DNS label.
const maxLabel = 63

// isDNSName says whether host is made of labels of letters, digits and hyphens,
// with no hyphen at either end of a label.
func isDNSName(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !isAlphanumeric(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

// isZone says whether zone could be the name of a network interface, or is
// empty.
func isZone(zone string) bool {
	for _, c := range []byte(zone) {
		if !isAlphanumeric(c) && !strings.ContainsRune("-._~", rune(c)) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// checkSystem refuses a Redfish path that names something else than a system:
// a manager and a chassis cannot be booted.
func checkSystem(a Address) error {
	rest, ok := strings.CutPrefix(strings.Trim(a.SystemPath(), "/"), redfishRoot+"/")
	if !ok {
		return nil
	}
	collection, _, _ := strings.Cut(rest, "/")
	if !strings.EqualFold(collection, "Managers") && !strings.EqualFold(collection, "Chassis") {
		return nil
	}
	return fmt.Errorf("BMC address path %s is not that of a system: use a Systems path, such as /redfish/v1/Systems/1, "+
		"or no path if the BMC has only one system", a.Path)
}

// parseError says why an address is no URL. With a login in it the reason is
// kept back, since it may quote the password.
func parseError(address string, err error) error {
	const prefix = "failed to parse BMC address information: "
	if strings.Contains(address, "@") {
		return errors.New(prefix + "it is not a URL; leave out the login, it belongs into the Secret that credentialsName names")
	}
	return fmt.Errorf(prefix+"%w%s", err, bracketHint(address, schemeIPMI))
}

func unknownType(scheme, address string) error {
	hint := "; known types are ipmi, libvirt, and redfish, ilo5-redfish, idrac-redfish, redfish-virtualmedia, " +
		"ilo5-virtualmedia, idrac-virtualmedia and redfish-uefihttp with nothing, +http or +https behind it"
	switch {
	case isBareIPv6(address):
		hint = bracketHint(address, schemeIPMI)
	case !strings.Contains(address, "//"):
		hint = "; for IPMI on a port other than 623 write ipmi:// before the name"
	}
	//nolint:staticcheck // Others match on this text as it is.
	return fmt.Errorf("Unknown BMC type '%s' for address %s%s", scheme, v1alpha1.WithoutLogin(address), hint)
}

// bracketHint tells how to write an IPv6 address, if text is one that lacks its
// brackets.
func bracketHint(text, scheme string) string {
	text = strings.Trim(text, "[]")
	if !isBareIPv6(text) {
		return ""
	}
	return fmt.Sprintf("; write an IPv6 address in brackets: %s://[%s]", scheme, text)
}

func isBareIPv6(text string) bool {
	addr, err := netip.ParseAddr(text)
	return err == nil && addr.Is6() && isZone(addr.Zone())
}
