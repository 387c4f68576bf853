package testkit

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ZooKeeper is an Apache ZooKeeper server by itself.
type ZooKeeper struct {
	Address string // host:port
	*service
}

// StartZooKeeper starts a server, which ends with the test.
func StartZooKeeper(t testing.TB) *ZooKeeper {
	t.Helper()
	port := FreePort(t)
	dir := filepath.Join(os.TempDir(), "curt-zookeeper-"+rand.Text())
	return &ZooKeeper{net.JoinHostPort("127.0.0.1", port), launch(t, "zookeeper", dir, port, "alone")()}
}

// SecureZooKeeper is a server that speaks TLS at one port, and none at another one.
type SecureZooKeeper struct{ Secure, Plain *ZooKeeper }

// ZooKeeperTLS are files in PEM: who a server is, and whom its clients may be certified by. Mutual requires them to be.
type ZooKeeperTLS struct {
	Certificate, Key, Authority string
	Mutual                      bool
}

// StartSecureZooKeeper starts a server, which ends with the test.
func StartSecureZooKeeper(t testing.TB, files ZooKeeperTLS) SecureZooKeeper {
	t.Helper()
	dir, clients := t.TempDir(), "none"
	if files.Mutual {
		clients = "need"
	}
	for name, from := range map[string][]string{"server.pem": {files.Certificate, files.Key}, "ca.pem": {files.Authority}} {
		var all []byte
		for _, file := range from {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), all, 0o600); err != nil { //nolint:gosec // of the test
			t.Fatal(err)
		}
	}
	plain, secure := FreePort(t), FreePort(t)
	s := launch(t, "zookeeper", filepath.Join(os.TempDir(), "curt-zookeeper-"+rand.Text()), plain, secure+":"+clients+":"+dir)()
	return SecureZooKeeper{&ZooKeeper{net.JoinHostPort("127.0.0.1", secure), s}, &ZooKeeper{net.JoinHostPort("127.0.0.1", plain), s}}
}

// StartZooKeeperEnsemble starts three servers that keep the same, of which any two can decide.
func StartZooKeeperEnsemble(t testing.TB) [3]*ZooKeeper {
	t.Helper()
	var of [3]*ZooKeeper
	var ports [6]string // for the quorum, and for elections
	for i := range ports {
		ports[i] = FreePort(t)
	}
	var begun [3]func() *service
	for i := range of { // none is ready before two are there
		port := FreePort(t)
		of[i] = &ZooKeeper{Address: net.JoinHostPort("127.0.0.1", port)}
		dir := filepath.Join(os.TempDir(), "curt-zookeeper-"+rand.Text())
		begun[i] = launch(t, "zookeeper", dir, port, fmt.Sprintf("%d:%s", i+1, strings.Join(ports[:], ",")))
	}
	for i := range of {
		of[i].service = begun[i]()
	}
	return of
}

// URL returns what a client connects to a node with.
func (z *ZooKeeper) URL(path string) string { return "zookeeper://" + z.Address + path }
