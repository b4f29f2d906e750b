package bmc

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxForeign bounds foreign text in errors, in characters.
const maxForeign = 300

var userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s]+@`)

// scrub makes foreign text fit for an error: without the given secrets, on one line,
// and short.
func scrub(text string, secrets ...string) string {
	longestFirst := func(a, b string) int { return len(b) - len(a) } // one may hold another
	for _, s := range slices.SortedFunc(slices.Values(secrets), longestFirst) {
		if s != "" {
			text = strings.ReplaceAll(text, s, hidden)
		}
	}
	text = withoutUser(text)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxForeign {
		text = string(runes[:maxForeign]) + "…"
	}
	return text
}

// withoutUser takes user names and passwords out of addresses.
func withoutUser(text string) string { return userInfo.ReplaceAllString(text, "$1") }

// secrets are all the forms in which a BMC could send credentials back.
func (c Credentials) secrets() []string {
	p := c.reveal()
	if p == "" {
		return nil
	}
	return []string{
		p, url.QueryEscape(p), url.PathEscape(p),
		base64.StdEncoding.EncodeToString([]byte(c.user + ":" + p)), base64.StdEncoding.EncodeToString([]byte(p)),
	}
}
