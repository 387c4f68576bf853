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
