package testbed

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// identity is a certificate and its private key, as text.
type identity struct {
	certificate, key []byte
	parsed           *x509.Certificate
	signer           crypto.Signer
}

// newAuthority returns a certificate authority of the test's own.
func newAuthority(tb testing.TB) identity {
	tb.Helper()
	return certify(tb, identity{}, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	})
}

// issue returns a certificate for a name, of a server and of a client.
func (a identity) issue(tb testing.TB, name string) identity {
	tb.Helper()
	return certify(tb, a, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// certify has by sign a certificate with a new key, or the key itself if by is the zero value.
func certify(tb testing.TB, by identity, c *x509.Certificate) identity {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if by.signer == nil {
		by = identity{parsed: c, signer: key}
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, by.parsed, key.Public(), by.signer)
	if err != nil {
		tb.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return identity{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		parsed:      parsed,
		signer:      key,
	}
}

func (i identity) pair(tb testing.TB) tls.Certificate {
	tb.Helper()
	pair, err := tls.X509KeyPair(i.certificate, i.key)
	if err != nil {
		tb.Fatal(err)
	}
	return pair
}

// Certificate writes the certificate of a server and a client called name to files, with its key
// and the certificate of its authority, and returns the paths of the files. All users of the
// machine can read the files.
func Certificate(tb testing.TB, name string) (authority, certificate, key string) {
	tb.Helper()
	dir := home(tb)
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	ca := newAuthority(tb)
	own := ca.issue(tb, name)
	write := func(file string, content []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	return write("ca.pem", ca.certificate), write("own.pem", own.certificate), write("key.pem", own.key)
}
