package testkit

import (
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
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

// URL returns what a client connects to a node with.
func (z *ZooKeeper) URL(path string) string { return "zookeeper://" + z.Address + path }
