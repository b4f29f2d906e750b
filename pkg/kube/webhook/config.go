package webhook

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
)

// Config are the settings of the webhook.
type Config struct {
	// Port is where the API's questions are taken, 9443 by custom; 0 takes none.
	Port int
	// CertificateFolder holds tls.crt and tls.key, which somebody else makes
	// and renews; "" makes them here.
	CertificateFolder string
	// Service is the Kubernetes Service that leads here, in Namespace; "" is
	// that of the Leases.
	Service, Namespace string
	// Secret holds the certificate that is made here, in Namespace.
	Secret string
	// URL is how the API reaches the webhook where there is no Service, such
	// as https://127.0.0.1:9443. The webhook's configuration is then written
	// too, whole.
	URL string
	// GuardDeletion refuses to delete hosts that have a consumer.
	GuardDeletion bool

	// TLSMinVersion and TLSMaxVersion are TLS12 or TLS13.
	TLSMinVersion, TLSMaxVersion string
	// TLSCipherSuites are the suites of TLS 1.2 that are taken; none means
	// those that Go takes.
	TLSCipherSuites []string
	// TLSCurves are the key exchanges that are taken, the best first; none
	// means those that Go takes.
	TLSCurves []string
}

// What deploy/webhook calls these objects.
const (
	defaultService = "webhook-service"
	defaultSecret  = "metalbus-webhook-certificate" //nolint:gosec // the name of a Secret
)

// Bind adds the settings to the flags of a program, with their defaults.
// Namespace is none of them: it is that of the pod.
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.IntVar(&c.Port, "webhook-port", 0, "`port` of the validating webhook, 9443 by custom; 0 for none")
	fs.StringVar(&c.CertificateFolder, "webhook-cert-dir", "", "`folder` with tls.crt and tls.key of the webhook, read again when they change; empty to make and renew them")
	fs.StringVar(&c.Service, "webhook-service", defaultService, "`name` of the Service that leads to the webhook")
	fs.StringVar(&c.Secret, "webhook-secret", defaultSecret, "`name` of the Secret that the webhook's own certificate is kept in")
	fs.StringVar(&c.URL, "webhook-url", "", "`URL` by which the Kubernetes API reaches the webhook, where no Service leads to it; the webhook's configuration is then written too")
	fs.BoolVar(&c.GuardDeletion, "guard-host-deletion", false, "refuse to delete hosts that have a consumer; needs deploy/webhook/guard-deletion.yaml")
	fs.StringVar(&c.TLSMinVersion, "tls-min-version", tls12, "least `version` of TLS: TLS12 or TLS13")
	fs.StringVar(&c.TLSMaxVersion, "tls-max-version", tls13, "greatest `version` of TLS: TLS12 or TLS13")
	fs.StringSliceVar(&c.TLSCipherSuites, "tls-cipher-suites", nil, "comma-separated cipher `suites` of TLS 1.2, by their names in Go; empty for Go's own choice")
	fs.StringSliceVar(&c.TLSCurves, "tls-curve-preferences", nil, "comma-separated key `exchanges`, by their names in Go; empty for Go's own choice")
}

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	if c.Port == 0 {
		return nil
	}
	var errs []error
	if c.Port < 1 || c.Port > 65535 {
		errs = append(errs, fmt.Errorf("webhook-port %d: want 1 to 65535, or 0 for no webhook", c.Port))
	}
	if c.CertificateFolder == "" && c.Secret == "" {
		errs = append(errs, errors.New("webhook-secret is empty: name the Secret to keep the certificate in, or give webhook-cert-dir"))
	}
	if c.URL == "" && c.Service == "" {
		errs = append(errs, errors.New("webhook-service is empty: name the Service that leads to the webhook, or give webhook-url"))
	}
	if c.URL != "" && c.CertificateFolder != "" {
		errs = append(errs, errors.New("webhook-url and webhook-cert-dir do not go together: for a URL the certificate is made here"))
	}
	return errors.Join(append(errs, c.validateURL(), c.validateTLS())...)
}

func (c *Config) validateURL() error {
	if c.URL == "" {
		return nil
	}
	if u, err := url.Parse(c.URL); err != nil || u.Scheme != "https" || u.Host == "" || (u.Path != "" && u.Path != "/") {
		return fmt.Errorf("webhook-url %q: want https://host:port and nothing behind it", c.URL)
	}
	return nil
}

func (c *Config) validateTLS() error {
	var errs []error
	least, leastKnown := versionOf(c.TLSMinVersion)
	most, mostKnown := versionOf(c.TLSMaxVersion)
	if !leastKnown {
		errs = append(errs, fmt.Errorf("tls-min-version %q: want TLS12 or TLS13", c.TLSMinVersion))
	}
	if !mostKnown {
		errs = append(errs, fmt.Errorf("tls-max-version %q: want TLS12 or TLS13", c.TLSMaxVersion))
	}
	if leastKnown && mostKnown && least > most {
		errs = append(errs, fmt.Errorf("tls-min-version %s is above tls-max-version %s", c.TLSMinVersion, c.TLSMaxVersion))
	}
	_, err := curvesOf(c.TLSCurves)
	errs = append(errs, err)
	_, _, err = suitesOf(c.TLSCipherSuites)
	return errors.Join(append(errs, err)...)
}

// hosts are the names by which the API calls the webhook.
func (c *Config) hosts() []string {
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		return []string{u.Hostname()}
	}
	name := c.Service + "." + c.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}
