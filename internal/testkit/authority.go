package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority certifies servers and clients at the address 127.0.0.1, for an hour.
type Authority struct {
	Certificate *x509.Certificate
	File        string // the certificate in PEM

	template *x509.Certificate
	key      *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{template: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority " + rand.Text()}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}}
	var der []byte
	der, a.key = a.sign(t, a.template)
	var err error
	if a.Certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.File = WritePEM(t, t.TempDir(), "ca.pem", "CERTIFICATE", der)
	return a
}

// sign certifies a new key; the authority's own is the first.
func (a *Authority) sign(t testing.TB, c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.template, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// Pair writes a new certificate and its key to files of a folder.
func (a *Authority) Pair(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	der, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return WritePEM(t, dir, name+".pem", "CERTIFICATE", der), WritePEM(t, dir, name+".key", "PRIVATE KEY", text)
}

// WritePEM writes a file and returns its path.
func WritePEM(t testing.TB, dir, name, kind string, bytes []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
