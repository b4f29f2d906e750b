package switches

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// login is how to log in to a switch, out of its Secret.
type login struct {
	username, password, privateKey, adminPassword string
}

// loginFrom reads a Secret. The error names the key, and never shows a value.
func loginFrom(data map[string][]byte) (login, error) {
	l := login{
		username: string(data["username"]), password: string(data["password"]),
		privateKey: string(data["ssh-privatekey"]), adminPassword: string(data["admin-password"]),
	}
	switch {
	case l.username == "":
		return login{}, errors.New("it has no username")
	case l.password == "" && l.privateKey == "":
		return login{}, errors.New("it has neither password nor ssh-privatekey")
	}
	for key, value := range map[string]string{"username": l.username, "password": l.password, "admin-password": l.adminPassword} {
		if !oneLine(value) {
			return login{}, fmt.Errorf("its %s has a line break or another control character in it", key)
		}
	}
	return l, nil
}

// oneLine reports whether a value can stand in the file: nothing in it begins
// another line.
func oneLine(value string) bool { return !strings.ContainsFunc(value, unicode.IsControl) }

// wired is a switch with its login.
type wired struct {
	*v1alpha1.BareMetalSwitch
	login login
}

// checkFields is what keeps a switch from being written into the file.
func checkFields(s *v1alpha1.BareMetalSwitch) error {
	for field, value := range map[string]string{"spec.address": s.Spec.Address, "spec.deviceType": s.Spec.DeviceType, "spec.driver": s.Spec.Driver} {
		if !oneLine(value) {
			return fmt.Errorf("%s has a line break or another control character in it; take it out", field)
		}
	}
	return nil
}

// keyFile is the name under which a switch's private key is kept.
func keyFile(s *v1alpha1.BareMetalSwitch) string {
	return strings.ReplaceAll(s.Spec.MACAddress, ":", "-") + ".key"
}

// render is the file that lists the switches, and the private keys by file
// name. folder is where the backend finds these.
func render(list []wired, folder string) (file string, keys map[string][]byte) {
	slices.SortFunc(list, func(a, b wired) int { return cmp.Compare(a.Name, b.Name) })
	keys = map[string][]byte{}
	var text strings.Builder
	text.WriteString("# This file is managed by the Baremetal Operator\n\n")
	for _, s := range list {
		line := func(key, value string) { fmt.Fprintf(&text, "%s=%s\n", key, value) }
		fmt.Fprintf(&text, "[switch:%s]\n", s.Name)
		line("address", s.Spec.Address)
		line("mac_address", s.Spec.MACAddress)
		if s.Spec.Port != nil {
			line("port", fmt.Sprint(*s.Spec.Port))
		}
		line("driver_type", cmp.Or(s.Spec.Driver, "generic-switch"))
		line("device_type", s.Spec.DeviceType)
		if s.Spec.DisableCertificateVerification {
			line("insecure", "true")
		}
		line("username", s.login.username)
		if s.login.privateKey != "" {
			keys[keyFile(s.BareMetalSwitch)] = []byte(s.login.privateKey)
			line("key_file", path.Join(folder, keyFile(s.BareMetalSwitch)))
		} else {
			line("password", s.login.password)
		}
		if s.login.adminPassword != "" {
			line("enable_secret", s.login.adminPassword)
		}
		text.WriteString("\n")
	}
	return text.String(), keys
}
