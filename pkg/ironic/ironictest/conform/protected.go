package conform

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RunProtected tries an Ironic whose API is protected by http_basic.
func RunProtected(t *testing.T, lab Lab, username, password string) {
	t.Helper()
	c := lab.session(t, "protected")
	with := func(user, password string) http.Header {
		return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}}
	}
	for _, path := range []string{"/", "/v1"} { // whoever asks may know the versions
		if r := c.askWith(http.Header{}, http.MethodGet, path, nil); r.status != http.StatusOK {
			c.Errorf("GET %s without credentials: %d", path, r.status)
		}
	}
	refused := func(header http.Header, words string) {
		c.Helper()
		r := c.askWith(header, http.MethodGet, "/v1/nodes", nil)
		want := obj{"error": obj{"message": words, "code": float64(http.StatusUnauthorized)}}
		if diff := cmp.Diff(want, r.obj()); r.status != http.StatusUnauthorized || diff != "" {
			c.Errorf("%d (-want +got):\n%s", r.status, diff)
		}
		if r.header.Get("WWW-Authenticate") == "" {
			c.Errorf("nothing says which credentials are wanted: %v", r.header)
		}
	}
	refused(http.Header{}, "Authorization required")
	refused(with(username, "wrong"), "Incorrect username or password")
	refused(with("nobody", password), "Incorrect username or password")
	if r := c.askWith(with(username, password), http.MethodGet, "/v1/nodes", nil); r.status != http.StatusOK {
		c.Errorf("with the credentials: %d %v", r.status, r.body)
	}
}
