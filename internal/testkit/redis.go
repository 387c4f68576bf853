package testkit

import (
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Redis is one Redis server of a test.
type Redis struct {
	Address string // host:port
	Pid     int    // of the server
}

// StartRedis starts a server by itself, which ends with the test.
func StartRedis(t testing.TB) *Redis { return startRedis(t, "redis", "alone") }

// StartRedisBloom starts a server with RedisBloom, which ends with the test.
func StartRedisBloom(t testing.TB) *Redis { return startRedis(t, "redis", "bloom") }

// startRedis starts a server or a Sentinel in a folder that goes with it.
func startRedis(t testing.TB, service, how string) *Redis {
	t.Helper()
	dir, port := filepath.Join(os.TempDir(), "curt-"+service+"-"+rand.Text()), FreePort(t)
	pid := start(t, service, dir, port, how)
	return &Redis{Address: net.JoinHostPort("127.0.0.1", port), Pid: pid}
}

// Again starts a new server, which knows nothing, where one was that has been killed.
func (r *Redis) Again(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(r.Address)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "a free port", func() bool {
		l, err := net.Listen("tcp", r.Address) //nolint:noctx // bound and released at once
		return err == nil && l.Close() == nil
	})
	r.Pid = start(t, "redis", filepath.Join(os.TempDir(), "curt-redis-"+rand.Text()), port, "alone")
}

// URL returns what a client connects with.
func (r *Redis) URL() string { return "redis://" + r.Address }

// Do runs a command by redis-cli and returns what it says, without the last line end.
func (r *Redis) Do(t testing.TB, args ...string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(r.Address)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).CombinedOutput() //nolint:gosec,noctx // a test's own words
	if err != nil {
		t.Fatalf("redis-cli %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Sentinel is a primary with a replica and three Sentinels that watch them.
type Sentinel struct {
	Primary, Replica *Redis
	Sentinels        []*Redis
}

// StartSentinel starts all of it, and returns when each Sentinel knows the others and the
// replica. A fail-over begins after three minutes of silence, or as Hasty says.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{Primary: StartRedis(t)}
	_, port, _ := net.SplitHostPort(s.Primary.Address)
	s.Replica = startRedis(t, "redis", port)
	for range 3 {
		s.Sentinels = append(s.Sentinels, startRedis(t, "sentinel", port))
	}
	until(t, "Sentinels that know each other", func() bool {
		for _, one := range s.Sentinels {
			state := strings.Fields(one.Do(t, "sentinel", "master", "curt"))
			if field(state, "num-other-sentinels") != "2" || field(state, "num-slaves") != "1" {
				return false
			}
		}
		return strings.Contains(s.Replica.Do(t, "info", "replication"), "master_link_status:up")
	})
	s.silence(t, patience)
	return s
}

// patience is for how long a primary may be silent before others take over from it, in milliseconds, where a test does not ask
// for a fail-over: a busy machine may stop for seconds, and what a fail-over loses is no fault of who is tested.
const patience = "180000"

// Hasty has a fail-over begin a second after the primary fell silent.
func (s *Sentinel) Hasty(t testing.TB) {
	t.Helper()
	s.silence(t, "1000")
}

func (s *Sentinel) silence(t testing.TB, milliseconds string) {
	t.Helper()
	for _, one := range s.Sentinels {
		one.Do(t, "sentinel", "set", "curt", "down-after-milliseconds", milliseconds)
	}
}

// URL returns what a client connects with.
func (s *Sentinel) URL() string {
	q := url.Values{"master_set": {"curt"}}
	for _, one := range s.Sentinels[1:] {
		q.Add("addr", one.Address)
	}
	return s.Sentinels[0].URL() + "?" + q.Encode()
}

// Cluster is a Redis Cluster of three primaries, each with a replica.
type Cluster struct{ Nodes []*Redis }

// StartCluster starts one, and returns when all of its nodes agree. A fail-over begins after three minutes of silence, or
// as Hasty says.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	create := []string{"--cluster", "create"}
	for range 6 {
		n := startRedis(t, "redis", "cluster")
		c.Nodes = append(c.Nodes, n)
		create = append(create, n.Address)
	}
	c.Nodes[0].Do(t, append(create, "--cluster-replicas", "1", "--cluster-yes")...)
	until(t, "nodes that agree", func() bool {
		for _, n := range c.Nodes {
			if !strings.Contains(n.Do(t, "cluster", "info"), "cluster_state:ok") ||
				strings.Contains(n.Do(t, "info", "replication"), "master_link_status:down") ||
				strings.Count(n.Do(t, "cluster", "nodes"), "slave") != 3 {
				return false
			}
		}
		return true
	})
	c.silence(t, patience)
	return c
}

// Hasty has a fail-over begin one and a half seconds after a primary fell silent.
func (c *Cluster) Hasty(t testing.TB) {
	t.Helper()
	c.silence(t, "1500")
}

func (c *Cluster) silence(t testing.TB, milliseconds string) {
	t.Helper()
	for _, n := range c.Nodes {
		n.Do(t, "config", "set", "cluster-node-timeout", milliseconds)
	}
}

// URL returns what a client connects with.
func (c *Cluster) URL() string {
	q := url.Values{}
	for _, n := range c.Nodes[1:] {
		q.Add("addr", n.Address)
	}
	return c.Nodes[0].URL() + "?" + q.Encode()
}

// field returns what follows a name in a list of names and values; "" = nothing.
func field(list []string, name string) string {
	for i := 0; i+1 < len(list); i++ {
		if list[i] == name {
			return list[i+1]
		}
	}
	return ""
}
