package ironic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// The keys of Secrets that hold the logins of registries, by their type.
const (
	keyDockerConfigJSON = ".dockerconfigjson"
	keyDockerCfg        = ".dockercfg"
)

// registryLogin is one login of a registry.
type registryLogin struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// pullSecret is the login of the registry that an OCI image lies in, as
// user:password, "" if the host names none.
func (b *Backend) pullSecret(ctx context.Context, h lifecycle.Host) (string, error) {
	image := h.Intent.Spec.Image
	if !image.IsOCI() || image.OCIAuthSecretName == nil || *image.OCIAuthSecretName == "" {
		return "", nil
	}
	name := *image.OCIAuthSecretName
	data, _, err := b.beside.Secrets.Get(ctx, h.Intent.Namespace, name)
	if err != nil {
		return "", err
	}
	logins, err := registryLogins(data)
	if err == nil {
		var login string
		if login, err = loginFor(logins, image.URL); err == nil {
			return login, nil
		}
	}
	return "", badSecret(fmt.Sprintf("failed to extract credentials from secret %q: %s", name, err), "Make it a Secret of type kubernetes.io/dockerconfigjson with a login for the registry of spec.image.url")
}

// registryLogins are the logins in a Secret, by registry.
func registryLogins(data map[string][]byte) (map[string]registryLogin, error) {
	var config struct {
		Auths map[string]registryLogin `json:"auths"`
	}
	switch {
	case data[keyDockerConfigJSON] != nil:
		if json.Unmarshal(data[keyDockerConfigJSON], &config) != nil {
			return nil, fmt.Errorf("%s is not JSON", keyDockerConfigJSON)
		}
	case data[keyDockerCfg] != nil:
		if json.Unmarshal(data[keyDockerCfg], &config.Auths) != nil {
			return nil, fmt.Errorf("%s is not JSON", keyDockerCfg)
		}
	default:
		return nil, fmt.Errorf("it has an unsupported type: neither %s nor %s is in it", keyDockerConfigJSON, keyDockerCfg)
	}
	return config.Auths, nil
}

// loginFor is the login for an image's registry.
func loginFor(logins map[string]registryLogin, image string) (string, error) {
	u, err := url.Parse(image)
	if err != nil {
		return "", fmt.Errorf("the image's URL cannot be read")
	}
	for _, key := range registryKeys(u.Host) {
		if l, ok := logins[key]; ok {
			return l.plain()
		}
	}
	return "", fmt.Errorf("there is no login for registry %s in it", u.Host)
}

// registryKeys are the names that a registry goes by in such Secrets.
func registryKeys(host string) []string {
	keys := []string{host, "https://" + host, "http://" + host, "https://" + host + "/", "https://" + host + "/v1/", "https://" + host + "/v2/"}
	switch host {
	case "docker.io", "index.docker.io", "registry-1.docker.io":
		keys = append([]string{"https://index.docker.io/v1/"}, keys...)
	}
	return keys
}

// plain is the login as user:password.
func (l registryLogin) plain() (string, error) {
	if l.Username != "" && l.Password != "" {
		return l.Username + ":" + l.Password, nil
	}
	raw, err := base64.StdEncoding.DecodeString(l.Auth)
	user, password, found := strings.Cut(string(raw), ":")
	if err != nil || !found || user == "" || password == "" {
		return "", fmt.Errorf("the login has neither username and password nor a usable auth")
	}
	return user + ":" + password, nil
}
