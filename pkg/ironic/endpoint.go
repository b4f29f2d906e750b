package ironic

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// versionRoot is the path below which all resources are.
const versionRoot = "/v1/"

// endpoint brings an endpoint as people write it to the one form that requests
// are built on: with the version, and a slash at the end.
func endpoint(text string) (string, error) {
	if text == "" {
		return "", errors.New("the endpoint is empty: give the URL of the Ironic API, such as http://192.0.2.5:6385/v1/")
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return "", fmt.Errorf("the endpoint %q is not like http://192.0.2.5:6385/v1/", scrub(text))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the endpoint %q has more than scheme, host and path: leave out credentials and query", scrub(text))
	}
	path := strings.TrimRight(u.EscapedPath(), "/") + "/"
	if !strings.HasSuffix(path, versionRoot) {
		path += strings.TrimPrefix(versionRoot, "/")
	}
	return u.Scheme + "://" + u.Host + path, nil
}
