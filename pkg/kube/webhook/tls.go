package webhook

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// The versions of TLS that can be chosen, as the settings call them.
const (
	tls12 = "TLS12"
	tls13 = "TLS13"
)

func versionOf(name string) (uint16, bool) {
	switch name {
	case tls12:
		return tls.VersionTLS12, true
	case tls13:
		return tls.VersionTLS13, true
	default:
		return 0, false
	}
}

// curves are the key exchanges that can be chosen, in the order in which they
// are told to whoever names another one.
func curves() []tls.CurveID {
	return []tls.CurveID{
		tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521,
		tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024,
	}
}

// curvesOf translates names of key exchanges.
func curvesOf(names []string) ([]tls.CurveID, error) {
	var ids []tls.CurveID
	for _, name := range names {
		known := curves()
		i := slices.IndexFunc(known, func(id tls.CurveID) bool { return id.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("tls-curve-preferences: %q is not known; want of %s", name, list(known))
		}
		ids = append(ids, known[i])
	}
	return ids, nil
}

func list(ids []tls.CurveID) string {
	var names []string
	for _, id := range ids {
		names = append(names, id.String())
	}
	return strings.Join(names, ", ")
}

// suitesOf translates names of cipher suites. Insecure ones are told apart.
func suitesOf(names []string) (ids []uint16, insecure []string, err error) {
	for _, name := range names {
		byName := func(s *tls.CipherSuite) bool { return s.Name == name }
		if i := slices.IndexFunc(tls.CipherSuites(), byName); i >= 0 {
			ids = append(ids, tls.CipherSuites()[i].ID)
			continue
		}
		i := slices.IndexFunc(tls.InsecureCipherSuites(), byName)
		if i < 0 {
			return nil, nil, fmt.Errorf("tls-cipher-suites: %q is not known; want names as of Go's crypto/tls, such as %s",
				name, tls.CipherSuiteName(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256))
		}
		ids = append(ids, tls.InsecureCipherSuites()[i].ID)
		insecure = append(insecure, name)
	}
	return ids, insecure, nil
}

// tls is what is spoken. The configuration must be valid.
func (c *Config) tls(log *slog.Logger) *tls.Config {
	least, _ := versionOf(c.TLSMinVersion)
	most, _ := versionOf(c.TLSMaxVersion)
	groups, _ := curvesOf(c.TLSCurves)
	suites, insecure, _ := suitesOf(c.TLSCipherSuites)
	if len(suites) > 0 && least == tls.VersionTLS13 {
		log.Warn("tls-cipher-suites is not used: the suites of TLS 1.3 cannot be chosen")
		suites = nil
	}
	if len(insecure) > 0 && len(suites) > 0 {
		log.Warn("tls-cipher-suites has suites that are not secure", keySettings, strings.Join(insecure, ","))
	}
	return &tls.Config{MinVersion: least, MaxVersion: most, CurvePreferences: groups, CipherSuites: suites}
}
