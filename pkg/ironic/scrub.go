package ironic

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// hidden stands where a secret stood.
const hidden = "******"

// maxForeign bounds foreign text in errors, in characters.
const maxForeign = 500

// scrub makes foreign text fit for an error: without the given secrets, on one
// line, and short.
func scrub(text string, secrets ...string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, hidden)
	}
	text = v1alpha1.WithoutLogins(text)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxForeign {
		text = string(runes[:maxForeign]) + "…"
	}
	return text
}

// Scrub makes text that Ironic keeps, such as a last_error, fit for people: on
// one line, short, and without the login of a URL.
func Scrub(text string) string { return scrub(text) }

// secretKey reports whether a value under this key must not be seen.
func secretKey(key string) bool {
	key = strings.ToLower(key)
	for _, part := range []string{"password", "secret", "token", "user_data", "priv_key", "private_key"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// secretsIn are the secrets in the body of a request, in all the forms in which
// an answer could quote them, the longest first.
func secretsIn(body any) []string {
	b, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	var tree any
	if json.Unmarshal(b, &tree) != nil {
		return nil
	}
	var found []string
	collect(tree, false, &found)
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(found)
}

// collect adds the texts below v that are secret.
func collect(v any, secret bool, found *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			collect(below, secret || secretKey(key) || secretPath(v, key), found)
		}
	case []any:
		for _, below := range v {
			collect(below, secret, found)
		}
	case string:
		if secret && v != "" {
			*found = append(*found, forms(v)...)
		}
	}
}

// secretPath: in a JSON patch the key is in the path.
func secretPath(operation map[string]any, key string) bool {
	path, _ := operation["path"].(string)
	return key == "value" && secretKey(path)
}

func forms(secret string) []string {
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	if quoted, err := json.Marshal(secret); err == nil {
		all = append(all, strings.Trim(string(quoted), `"`))
	}
	return all
}
