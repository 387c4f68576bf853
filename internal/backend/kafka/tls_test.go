package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// authority certifies whoever asks.
type authority struct {
	template, certificate *x509.Certificate
	key                   *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{template: &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}}
	var der []byte
	der, a.key = a.sign(t, a.template)
	var err error
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign certifies a new key; the authority's own is the first.
func (a *authority) sign(t *testing.T, c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
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

// pair writes a certificate and its key to files.
func (a *authority) pair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	der, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, dir, name+".pem", "CERTIFICATE", der), written(t, dir, name+".key", "PRIVATE KEY", text)
}

func written(t *testing.T, dir, name, kind string, bytes []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBothSidesAreCertified connects to brokers that want to know who asks.
func TestBothSidesAreCertified(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	ca := written(t, dir, "ca.pem", "CERTIFICATE", a.certificate.Raw)
	cert, key := a.pair(t, dir, "client")
	broker, err := tls.LoadX509KeyPair(a.pair(t, dir, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	ours := x509.NewCertPool()
	ours.AddCert(a.certificate)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{broker}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	url := "kafka://" + cluster.ListenAddrs()[0] + "/clicks?ca=" + ca
	c, err := Parse(url + "&cert=" + cert + "&key=" + key)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := Migrate(t.Context(), c, Topic{}); err != nil || !made {
		t.Errorf("certified: %v, %v", made, err)
	}
	// A pair that is renewed counts for the next connection, a broken one for none.
	if err := os.WriteFile(key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, c); !strings.Contains(err.Error(), "cert, key") {
		t.Errorf("with a broken key: %v", err)
	}
	a.pair(t, dir, "client")
	if n, err := Probe(t.Context(), c); err != nil || n != 12 {
		t.Errorf("renewed: %d partitions, %v", n, err)
	}
	if c, err = Parse(url); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, c); !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
}

// refused connects to a broker as clients do, and returns why that did not work.
func refused(t *testing.T, c Config) error {
	t.Helper()
	settings := c.TLS.Clone()
	settings.ServerName = "127.0.0.1"
	d := tls.Dialer{Config: settings}
	conn, err := d.DialContext(t.Context(), "tcp", c.Brokers[0])
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1)) // the broker says nothing to whom it knows
	return err
}

func TestFilesOfTLS(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	ca := written(t, dir, "ca.pem", "CERTIFICATE", a.certificate.Raw)
	cert, key := a.pair(t, dir, "client")
	_, other := a.pair(t, dir, "other")
	for query, want := range map[string]bool{
		"tls=true&ca=" + ca:                true,
		"cert=" + cert + "&key=" + key:     true,
		"tls=false&ca=" + ca:               false,
		"cert=" + cert:                     false,
		"tls=true&key=" + key:              false,
		"cert=" + cert + "&key=" + other:   false,
		"ca=" + key:                        false,
		"ca=" + dir:                        false,
		"ca=" + filepath.Join(dir, "none"): false,
	} {
		c, err := Parse("kafka://b1/clicks?" + query)
		if (err == nil) != want || want && c.TLS == nil {
			t.Errorf("%s: %+v, %v", query, c, err)
		}
	}
}
