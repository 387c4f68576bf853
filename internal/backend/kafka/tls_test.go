package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"curt/internal/testkit"
)

// TestBothSidesAreCertified connects to brokers that want to know who asks.
func TestBothSidesAreCertified(t *testing.T) {
	dir, a := t.TempDir(), testkit.NewAuthority(t)
	cert, key := a.Pair(t, dir, "client")
	broker, err := tls.LoadX509KeyPair(a.Pair(t, dir, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	ours := x509.NewCertPool()
	ours.AddCert(a.Certificate)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{broker}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	url := "kafka://" + cluster.ListenAddrs()[0] + "/clicks?ca=" + a.File
	c, err := Parse(url + "&cert=" + cert + "&key=" + key)
	if err != nil {
		t.Fatal(err)
	}
	if topics, err := Migrate(t.Context(), c, Topic{}); err != nil || !topics[0].New {
		t.Errorf("certified: %v, %v", topics, err)
	}
	// A pair that is renewed counts for the next connection, a broken one for none.
	if err := os.WriteFile(key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, c); !strings.Contains(err.Error(), "cert, key") {
		t.Errorf("with a broken key: %v", err)
	}
	a.Pair(t, dir, "client")
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
	if err := conn.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1)) // the broker says nothing to whom it knows
	return err
}
