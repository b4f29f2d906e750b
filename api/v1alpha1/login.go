package v1alpha1

import (
	"regexp"
	"strconv"
	"strings"
)

// WithoutLogin takes user name and password out of a URL, or of a BMC address. It
// also does so where they keep it from being a proper URL.
func WithoutLogin(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(authority, '@')
	if _, port, ok := strings.Cut(authority, ":"); at < 0 && ok && !isPort(port) {
		// A password with a slash in it.
		at = strings.LastIndexByte(rest, '@')
	}
	return scheme + rest[at+1:]
}

// isPort reports whether what stands behind the first colon of an authority is
// a port, or the rest of an IPv6 address.
func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil || strings.ContainsAny(text, ":]")
}

// HoldsLogin reports whether there is a user name or a password in a URL.
func HoldsLogin(address string) bool { return WithoutLogin(address) != address }

var logins = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s'"]+@`)

// WithoutLogins takes user names and passwords out of the URLs in a text.
func WithoutLogins(text string) string { return logins.ReplaceAllString(text, "$1") }

// WithoutLogin is the image without user names and passwords in its URLs, which is
// all that may be told of it.
func (i Image) WithoutLogin() Image {
	i.URL, i.Checksum = WithoutLogin(i.URL), WithoutLogin(i.Checksum)
	return i
}
