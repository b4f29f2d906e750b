// Package bmcaddress reads the address of a machine's management controller
// (BMC), as users write it into spec.bmc.address, and tells what follows from
// it: how to speak with the BMC, which Ironic driver and interfaces fit, and
// what the driver can do. It looks nothing up and calls nobody.
//
// An address is a URL whose scheme names the type of BMC, such as
//
//	redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1
//
// A bare name or IPv4 address, with or without a port behind an IPv4 address or
// a bracketed IPv6 one, is IPMI. A bare IPv6 address without brackets is
// refused, since its last part could be a port.
package bmcaddress

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Address is a BMC's address taken apart. Addresses that mean the same are
// equal by ==, but for the case of letters in Host and a slash at the end of
// Path.
type Address struct {
	// Type is the scheme in lower case with its suffix, such as
	// "redfish+http". It is the name of the type in messages.
	Type string
	// Host is a DNS name or an IP address, IPv6 without brackets and with its
	// zone, if any. It may be empty.
	Host string
	// Port is the port as written; empty if none was.
	Port string
	// Path is the path as written, with its escapes; empty, or beginning with
	// a slash.
	Path string
	// RawQuery is what stands behind the question mark, as written.
	RawQuery string
	// SkipVerify is true if any certificate of the BMC is good.
	SkipVerify bool
}

// Default ports.
const (
	portIPMI  = "623"
	portHTTP  = "80"
	portHTTPS = "443"
)

// String is the address in its plainest form, with the scheme and without a
// login. Parsing it gives the same Address.
func (a Address) String() string {
	s := a.Type + "://" + a.hostPort() + a.Path
	if a.RawQuery != "" {
		s += "?" + a.RawQuery
	}
	return s
}

// PortOrDefault is the port to connect to: the one that was written, else the
// default of the protocol.
func (a Address) PortOrDefault() string {
	switch {
	case a.Port != "":
		return a.Port
	case !a.IsRedfish():
		return portIPMI
	case a.protocol() == "http":
		return portHTTP
	default:
		return portHTTPS
	}
}

// IsRedfish says whether the BMC is spoken with over Redfish; else it is IPMI.
func (a Address) IsRedfish() bool { return a.Family().redfish }

// BaseURL is where a Redfish client begins, such as "https://192.0.2.10:8443",
// without a slash at the end. It is empty for IPMI.
func (a Address) BaseURL() string {
	if !a.IsRedfish() {
		return ""
	}
	return a.protocol() + "://" + a.hostPort()
}

// SystemPath is the Redfish path of the machine, such as
// "/redfish/v1/Systems/1", without a slash at the end. It is empty if the
// address names none, in which case the BMC's only system is meant, and for
// IPMI.
func (a Address) SystemPath() string {
	if !a.IsRedfish() {
		return ""
	}
	trimmed := strings.Trim(a.Path, "/")
	if trimmed == "" || trimmed == redfishRoot {
		return ""
	}
	return strings.TrimRight(a.Path, "/")
}

// PrivilegeLevel is the IPMI privilege level to log in with.
func (a Address) PrivilegeLevel() string {
	// What does not parse is not there: the rest of the query still holds.
	query, _ := url.ParseQuery(a.RawQuery)
	if level := query.Get("privilegelevel"); level != "" {
		return level
	}
	return "ADMINISTRATOR"
}

// HostIsLiteral says whether the host is an IP address rather than a name.
func (a Address) HostIsLiteral() bool {
	_, err := netip.ParseAddr(a.Host)
	return err == nil
}

// redfishRoot is the path of a Redfish service without its slashes.
const redfishRoot = "redfish/v1"

// protocol is what carries Redfish: http or https.
func (a Address) protocol() string {
	if _, suffix, _ := strings.Cut(a.Type, "+"); suffix != "" {
		return suffix
	}
	return "https"
}

// hostPort is host and port as they stand in a URL.
func (a Address) hostPort() string {
	host := a.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.Port != "" {
		host = net.JoinHostPort(a.Host, a.Port)
	}
	// url.URL escapes the zone of an IPv6 address.
	return strings.TrimPrefix((&url.URL{Host: host}).String(), "//")
}
