package bmc

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// maxForeign bounds foreign text in errors, in characters.
const maxForeign = 300

// scrub makes foreign text fit for an error: without the given secrets, on one line,
// and short.
func scrub(text string, secrets ...string) string {
	longestFirst := func(a, b string) int { return len(b) - len(a) } // one may hold another
	for _, s := range slices.SortedFunc(slices.Values(secrets), longestFirst) {
		text = hide(text, s)
	}
	text = v1alpha1.WithoutLogins(text)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxForeign {
		text = string(runes[:maxForeign]) + "…"
	}
	return text
}

// shortSecret is how long a secret must be to be looked for inside of words. Hiding
// each "a" of a text would only show that the secret is "a".
const shortSecret = 4

func hide(text, secret string) string {
	switch {
	case secret == "":
		return text
	case len(secret) >= shortSecret:
		return strings.ReplaceAll(text, secret, hidden)
	default:
		return regexp.MustCompile(`(^|[^\pL\pN])`+regexp.QuoteMeta(secret)+`($|[^\pL\pN])`).ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
}

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
