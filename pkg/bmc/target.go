package bmc

import (
	"fmt"
	"net/url"
	"strings"
)

// Target says which machine is meant and how its BMC is entered.
type Target struct {
	// BaseURL is the address of the BMC: http or https, host and, if it is not the
	// usual one, port. IPv6 addresses are in brackets.
	BaseURL string
	// SystemPath is the path of the system, like /redfish/v1/Systems/1. Empty takes
	// the only system that there is.
	SystemPath string
	// Credentials of the BMC.
	Credentials Credentials
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
}

// address checks the target and gives its base URL in one form.
func (t Target) address() (string, error) {
	u, err := url.Parse(t.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("bmc: the address %q is not like https://192.0.2.10", scrub(t.BaseURL))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return "", fmt.Errorf("bmc: the address %q has more than host and port: give the system's path and the credentials apart from it", scrub(t.BaseURL))
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), nil // which writes an IPv6 zone as it must be
}

// systemPath is the path without a slash at the end; "" asks for the only system.
func (t Target) systemPath() (string, error) {
	p := strings.TrimRight(t.SystemPath, "/")
	if p == "" || p == "/redfish/v1" || p == "/redfish" {
		return "", nil
	}
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "?#") {
		return "", fmt.Errorf("bmc: the system path %q is not like /redfish/v1/Systems/1", t.SystemPath)
	}
	return p, nil
}
