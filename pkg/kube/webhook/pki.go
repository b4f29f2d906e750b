package webhook

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const day = 24 * time.Hour

// How long what is made here lives, and how long before its end its successor
// is made. An authority's successor is made while the certificates that it has
// signed have less to live than it.
const (
	authorityLife  = 2 * 365 * day
	authorityRenew = 180 * day
	servingLife    = 90 * day
	servingRenew   = 30 * day
	// settle is how long a new authority is shown to the Kubernetes API before
	// anything that it has signed is.
	settle = 10 * time.Minute
	// early is how long before now they are valid, for clocks that are late.
	early = time.Hour
)

// keys are an authority and a certificate for the webhook.
type keys struct {
	// bundle is the authorities to trust, the newest first.
	bundle []*x509.Certificate
	// signer is the key of the newest.
	signer crypto.Signer
	// serving is the certificate to show; it has its Leaf.
	serving tls.Certificate
}

// renewed is what k should be now, for a webhook that is called by these names.
// It is k itself if all is well.
func renewed(k keys, names []string, now time.Time) (keys, error) {
	next := k
	next.bundle = slices.DeleteFunc(slices.Clone(k.bundle), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	if k.signer == nil || len(next.bundle) == 0 || next.bundle[0] != k.bundle[0] || next.bundle[0].NotAfter.Sub(now) < authorityRenew {
		if err := next.addAuthority(now); err != nil {
			return keys{}, err
		}
	}
	if next.servesWell(names, now) {
		return next, nil
	}
	return next, next.addServing(names, now)
}

// same reports whether two are equal: they are made of the same certificates.
func (k keys) same(other keys) bool {
	equal := func(a, b *x509.Certificate) bool { return a.Equal(b) }
	return slices.EqualFunc(k.bundle, other.bundle, equal) && k.serving.Leaf != nil && other.serving.Leaf != nil &&
		k.serving.Leaf.Equal(other.serving.Leaf)
}

// servesWell reports whether the certificate can go on being shown.
func (k keys) servesWell(names []string, now time.Time) bool {
	leaf := k.serving.Leaf
	if leaf == nil || now.Before(leaf.NotBefore) || leaf.NotAfter.Sub(now) < servingRenew {
		return false
	}
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	newest := k.bundle[0]
	if leaf.CheckSignatureFrom(newest) == nil {
		return true
	}
	settled := now.Sub(newest.NotBefore.Add(early)) >= settle
	return !settled && slices.ContainsFunc(k.bundle[1:], func(c *x509.Certificate) bool { return leaf.CheckSignatureFrom(c) == nil })
}

func (k *keys) addAuthority(now time.Time) error {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "metalbus webhook authority"},
		NotBefore: now.Add(-early), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authority, err := sign(template, template, signer, signer)
	if err != nil {
		return err
	}
	k.bundle, k.signer = append([]*x509.Certificate{authority}, k.bundle...), signer
	return nil
}

func (k *keys) addServing(names []string, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "metalbus webhook"},
		NotBefore: now.Add(-early), NotAfter: now.Add(servingLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	leaf, err := sign(template, k.bundle[0], key, k.signer)
	if err != nil {
		return err
	}
	k.serving = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	return nil
}

func sign(template, parent *x509.Certificate, key, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return x509.ParseCertificate(raw)
}

// The keys of a Secret that holds keys: those of Kubernetes' type for
// certificates, and the authority.
const (
	certificateKey  = "tls.crt"
	privateKey      = "tls.key"
	authorityKey    = "ca.crt"
	authoritySecret = "ca.key"
)

// The types of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// encode is what a Secret holds.
func (k keys) encode() (map[string][]byte, error) {
	serving, err := encodeKey(k.serving.PrivateKey)
	if err != nil {
		return nil, err
	}
	signer, err := encodeKey(k.signer)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		certificateKey: encodeCertificates(k.serving.Leaf), privateKey: serving,
		authorityKey: encodeCertificates(k.bundle...), authoritySecret: signer,
	}, nil
}

func encodeCertificates(list ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})...)
	}
	return text
}

func encodeKey(key any) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: raw}), nil
}

// parseKeys reads what a Secret holds. The error never shows any of it.
func parseKeys(data map[string][]byte) (k keys, err error) {
	if k.serving, err = tls.X509KeyPair(data[certificateKey], data[privateKey]); err != nil {
		return keys{}, fmt.Errorf("%s and %s are no pair", certificateKey, privateKey)
	}
	if k.bundle, err = parseCertificates(data[authorityKey]); err != nil {
		return keys{}, err
	}
	signing, err := tls.X509KeyPair(encodeCertificates(k.bundle[0]), data[authoritySecret])
	if err != nil {
		return keys{}, fmt.Errorf("%s is not the key of the first certificate in %s", authoritySecret, authorityKey)
	}
	signer, ok := signing.PrivateKey.(crypto.Signer)
	if !ok {
		return keys{}, fmt.Errorf("%s can not sign", authoritySecret)
	}
	k.signer = signer
	return k, nil
}

func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s holds something that is no certificate", authorityKey)
		}
		all, text = append(all, c), rest
	}
	if len(all) == 0 {
		return nil, errors.New(authorityKey + " holds no certificate")
	}
	return all, nil
}
