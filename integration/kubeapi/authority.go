package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is that of the authority and of each start's serving certificate.
const validity = 10 * 365 * 24 * time.Hour

// An authority signs the serving certificate. Kubeconfigs carry it, so it is
// made once for each folder.
type authority struct {
	certificate []byte // PEM
	parsed      *x509.Certificate
	key         *ecdsa.PrivateKey
}

func loadAuthority(dir string) (authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if _, err := os.Stat(certFile); err != nil {
		if err := makeAuthority(certFile, keyFile); err != nil {
			return authority{}, fmt.Errorf("make the certificate authority: %w", err)
		}
	}
	a, err := readAuthority(certFile, keyFile)
	if err != nil {
		return authority{}, fmt.Errorf("%w; remove %s and %s to have new ones made, and hand out the kubeconfig anew", err, certFile, keyFile)
	}
	return a, nil
}

func makeAuthority(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate("kubeapi authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	// The certificate comes last: it is what tells that both are there.
	if err := os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(certFile, encode("CERTIFICATE", der), 0o600)
}

func readAuthority(certFile, keyFile string) (authority, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return authority{}, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return authority{}, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return authority{}, fmt.Errorf("%s or %s is not PEM", certFile, keyFile)
	}
	parsed, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return authority{}, fmt.Errorf("%s: %w", certFile, err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return authority{}, fmt.Errorf("%s: %w", keyFile, err)
	}
	return authority{certificate: certPEM, parsed: parsed, key: key}, nil
}

// serve makes a key and a certificate, both PEM, for a server of these names
// or addresses; it is always reachable by loopback.
func (a authority) serve(hosts ...string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := certificate("kubeapi")
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range append(hosts, "localhost", "127.0.0.1", "::1") {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(private)
	return encode("CERTIFICATE", der), key, err
}

func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return encode("EC PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
